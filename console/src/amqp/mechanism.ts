/** A SASL mechanism, in the form that rhea takes. */

/** Hands rhea the response to send, or the error that ends the exchange. */
type Respond = (error: Error | undefined, response?: Buffer | string) => void;

/** One SASL exchange, as rhea drives it. */
export interface Mechanism {
  /** Give the initial response. */
  start(respond: Respond): void;
  /** Answer a challenge of the server. */
  step(challenge: Uint8Array, respond: Respond): void;
}
