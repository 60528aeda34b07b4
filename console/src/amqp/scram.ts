/** SASL SCRAM (RFC 5802, RFC 7677) by the browser's WebCrypto: the password is proven to a server that proves that it knows the user. */

import type { Mechanism } from "./mechanisms";

const HASHES = { "SCRAM-SHA-512": "SHA-512", "SCRAM-SHA-256": "SHA-256", "SCRAM-SHA-1": "SHA-1" } as const;
/** Rounds that a server may ask for: fewer give the password away, and more keep the browser busy for minutes. */
const ROUNDS = { least: 4_096, most: 2_000_000 };
/** The client binds the exchange to no channel: the browser tells nothing of the TLS below it. */
const HEADER = "n,,";

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
const base64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));
const fromBase64 = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Return the attributes of a message such as "r=...,s=...,i=4096" by their letters. */
const attributesOf = (message: string): ReadonlyMap<string, string> =>
  new Map(message.split(",").map((part) => [part.slice(0, 1), part.slice(2)]));

async function hmac(hash: string, key: Uint8Array<ArrayBuffer>, text: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, text));
}

/** Return the answer to the server's first message, and the signature that its last one must carry. */
async function proof(hash: string, password: string, bare: string, challenge: string): Promise<{ answer: string; signature: string }> {
  const told = attributesOf(challenge);
  const [nonce, salt, rounds] = [told.get("r") ?? "", told.get("s") ?? "", Number(told.get("i"))];
  if (!nonce.startsWith(bare.slice(bare.lastIndexOf("r=") + 2))) throw new Error("the server answers another client");
  if (!(rounds >= ROUNDS.least && rounds <= ROUNDS.most)) throw new Error("the server asks for an unfit number of rounds");
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
  return { answer: `${last},p=${base64(clientKey.map((byte, place) => byte ^ (signed[place] ?? 0)))}`, signature: base64(signature) };
}

function exchange(hash: string, user: string, password: string): Mechanism {
  const name = user.normalize("NFKC").replaceAll("=", "=3D").replaceAll(",", "=2C");
  const bare = `n=${name},r=${base64(crypto.getRandomValues(new Uint8Array(24)))}`;
  let expected: string | undefined;
  const answerTo = async (challenge: string): Promise<string> => {
    if (expected === undefined) {
      const { answer, signature } = await proof(hash, password, bare, challenge);
      expected = signature;
      return answer;
    }
    if (attributesOf(challenge).get("v") !== expected) throw new Error("the server does not know this user's password");
    return "";
  };
  return {
    start: (answer) => answer(undefined, Buffer.from(HEADER + bare, "utf8")),
    step: (challenge, answer) => {
      answerTo(new TextDecoder().decode(challenge)).then(
        (text) => answer(undefined, Buffer.from(text, "utf8")),
        (error: unknown) => answer(error instanceof Error ? error : new Error(String(error))),
      );
    },
  };
}

/** Return the mechanisms for a password, by name; none where the page came without TLS from another machine: browsers lack WebCrypto there. */
export function scramMechanisms(user: string, password: string): Record<string, () => Mechanism> {
  if (!window.isSecureContext) return {};
  return Object.fromEntries(Object.entries(HASHES).map(([name, hash]) => [name, () => exchange(hash, user, password)]));
}
