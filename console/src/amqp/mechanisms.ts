/** The SASL mechanisms that the console supports, in the form that rhea takes. Secrets stay in the closures here. */

import "./node/globals";

import type { Mechanism } from "./mechanism";
import { scramMechanisms } from "./scram";

/** What a user logs in with; "none" stands for the browser's certificate or an anonymous login. */
export type Credentials =
  | { readonly kind: "none" }
  | { readonly kind: "password"; readonly user: string; readonly password: string }
  | { readonly kind: "token"; readonly user: string; readonly token: string };

/** Return a mechanism whose initial response holds all of the credentials. */
function singleMessage(text: string): () => Mechanism {
  return () => ({
    start: (respond) => respond(undefined, Buffer.from(text, "utf8")),
    // OAUTHBEARER answers a refusal by an empty message; the outcome follows.
    step: (_challenge, respond) => respond(undefined, Buffer.from("\u0001", "utf8")),
  });
}

/** Return the mechanisms that can send `credentials`, by name. */
export function mechanismsFor(credentials: Credentials): Record<string, () => Mechanism> {
  switch (credentials.kind) {
    case "none":
      return { EXTERNAL: singleMessage(""), ANONYMOUS: singleMessage("console") };
    case "password":
      return {
        ...scramMechanisms(credentials.user, credentials.password),
        PLAIN: singleMessage(`\0${credentials.user}\0${credentials.password}`),
      };
    case "token": {
      const { user, token } = credentials;
      return {
        OAUTHBEARER: singleMessage(`n,${user === "" ? "" : `a=${user}`},\u0001auth=Bearer ${token}\u0001\u0001`),
        XOAUTH2: singleMessage(`user=${user}\u0001auth=Bearer ${token}\u0001\u0001`),
      };
    }
  }
}

/** Return `mechanisms` wrapped so that each name that rhea looks up, one that the listener offers, is added to `offered`. */
export function recordLookups(
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
