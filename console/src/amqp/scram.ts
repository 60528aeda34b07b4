/** SASL SCRAM (RFC 5802, RFC 7677) by the browser's WebCrypto: client and server each prove that they know the password. */

import type { Mechanism } from "./mechanism";

const HASHES = { "SCRAM-SHA-512": "SHA-512", "SCRAM-SHA-256": "SHA-256", "SCRAM-SHA-1": "SHA-1" } as const;
/** Rounds of hashing that a server may request: fewer protect the password too little, more keep the browser busy for minutes. */
const ROUNDS = { min: 4_096, max: 2_000_000 };
/** No channel binding: a browser does not give pages access to its TLS session. */
const HEADER = "n,,";

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
const base64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));
const fromBase64 = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Return the attributes of a message such as "r=...,s=...,i=4096", by letter. */
const attributesOf = (message: string): ReadonlyMap<string, string> =>
  new Map(message.split(",").map((part) => [part.slice(0, 1), part.slice(2)]));

async function hmac(hash: string, key: Uint8Array<ArrayBuffer>, text: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, text));
}

/** Return the response to the server's first message, and the signature that the server's last message must carry. */
async function proof(hash: string, password: string, bare: string, challenge: string): Promise<{ response: string; signature: string }> {
  const attributes = attributesOf(challenge);
  const [nonce, salt, rounds] = [attributes.get("r") ?? "", attributes.get("s") ?? "", Number(attributes.get("i"))];
  if (!nonce.startsWith(bare.slice(bare.lastIndexOf("r=") + 2))) throw new Error("the server's nonce does not match");
  if (!(rounds >= ROUNDS.min && rounds <= ROUNDS.max)) throw new Error("the server requests an unsafe number of hash rounds");
  const secret = await crypto.subtle.importKey("raw", bytesOf(password.normalize("NFKC")), "PBKDF2", false, ["deriveBits"]);
  const bits = hash === "SHA-1" ? 160 : Number(hash.slice(4));
  const salted = new Uint8Array(
    await crypto.subtle.deriveBits({ name: "PBKDF2", hash, salt: fromBase64(salt), iterations: rounds }, secret, bits),
  );
  const clientKey = await hmac(hash, salted, bytesOf("Client Key"));
  const stored = new Uint8Array(await crypto.subtle.digest(hash, clientKey));
  const last = `c=${btoa(HEADER)},r=${nonce}`;
  const all = bytesOf(`${bare},${challenge},${last}`);
  const signed = await hmac(hash, stored, all);
  const signature = await hmac(hash, await hmac(hash, salted, bytesOf("Server Key")), all);
  return { response: `${last},p=${base64(clientKey.map((byte, place) => byte ^ (signed[place] ?? 0)))}`, signature: base64(signature) };
}

function exchange(hash: string, user: string, password: string): Mechanism {
  const name = user.normalize("NFKC").replaceAll("=", "=3D").replaceAll(",", "=2C");
  const bare = `n=${name},r=${base64(crypto.getRandomValues(new Uint8Array(24)))}`;
  let expected: string | undefined;
  const respondTo = async (challenge: string): Promise<string> => {
    if (expected === undefined) {
      const { response, signature } = await proof(hash, password, bare, challenge);
      expected = signature;
      return response;
    }
    if (attributesOf(challenge).get("v") !== expected) throw new Error("the server did not prove that it knows the password");
    return "";
  };
  return {
    start: (respond) => respond(undefined, Buffer.from(HEADER + bare, "utf8")),
    step: (challenge, respond) => {
      respondTo(new TextDecoder().decode(challenge)).then(
        (text) => respond(undefined, Buffer.from(text, "utf8")),
        (error: unknown) => respond(error instanceof Error ? error : new Error(String(error))),
      );
    },
  };
}

/** Return the mechanisms for a password, by name; none if another machine served the page without TLS: browsers then withhold WebCrypto. */
export function scramMechanisms(user: string, password: string): Record<string, () => Mechanism> {
  if (!window.isSecureContext) return {};
  return Object.fromEntries(Object.entries(HASHES).map(([name, hash]) => [name, () => exchange(hash, user, password)]));
}
