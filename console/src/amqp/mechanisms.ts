/** The SASL mechanisms that a browser can do, as rhea wants them. Secrets stay in the closures here. */

import "./node/globals";

import { scramMechanisms } from "./scram";

export type Credentials =
  | { readonly kind: "none" }
  | { readonly kind: "password"; readonly user: string; readonly password: string }
  | { readonly kind: "token"; readonly user: string; readonly token: string };

type Answer = (error: Error | undefined, response?: Buffer | string) => void;

/** One exchange of SASL. */
export interface Mechanism {
  start(answer: Answer): void;
  step(challenge: Uint8Array, answer: Answer): void;
}

/** A mechanism that says everything at once. */
function oneMessage(text: string): () => Mechanism {
  return () => ({
    start: (answer) => answer(undefined, Buffer.from(text, "utf8")),
    // OAUTHBEARER answers a refusal by an empty message; the outcome follows.
    step: (_challenge, answer) => answer(undefined, Buffer.from("\u0001", "utf8")),
  });
}

/** Return the mechanisms that go with `credentials`, by name. */
export function mechanismsFor(credentials: Credentials): Record<string, () => Mechanism> {
  switch (credentials.kind) {
    case "none":
      return { EXTERNAL: oneMessage(""), ANONYMOUS: oneMessage("console") };
    case "password":
      return {
        ...scramMechanisms(credentials.user, credentials.password),
        PLAIN: oneMessage(`\0${credentials.user}\0${credentials.password}`),
      };
    case "token": {
      const { user, token } = credentials;
      return {
        OAUTHBEARER: oneMessage(`n,${user === "" ? "" : `a=${user}`},\u0001auth=Bearer ${token}\u0001\u0001`),
        XOAUTH2: oneMessage(`user=${user}\u0001auth=Bearer ${token}\u0001\u0001`),
      };
    }
  }
}

/** Return `mechanisms` so that `offered` collects the names that rhea looks up: those that the listener offers. */
export function noting(
  mechanisms: Record<string, () => Mechanism>,
  offered: Set<string>,
): Record<string, () => Mechanism> {
  return new Proxy(mechanisms, {
    get(target, name) {
      if (typeof name === "string") offered.add(name);
      return Object.hasOwn(target, name) ? target[name as string] : undefined;
    },
  });
}
