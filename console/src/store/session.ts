/** The login and the connection: how it begins, is lost, comes back and ends. */

import { create } from "zustand";

import { AmqpConnection } from "../amqp/connection";
import { ConnectError } from "../amqp/errors";
import { query } from "../amqp/management";
import type { Credentials } from "../amqp/mechanisms";
import type { Entity, RouterRef, Row } from "../model/types";
import { EDGE_TABLES, interiorOf, ownConnections, ownRouter, routersOf } from "./discovery";
import { paceOf } from "./interests";
import { link, setLink } from "./link";
import { notify } from "./notices";
import { NO_RIGHTS, allows, fetchRights, type Rights } from "./rights";
import { fetchSchema, schemaNow } from "./schema";
import { addInterest, forgetRouters, lastTable, markLost, onSnapshot, pollRouters } from "./snapshot";

/** How often routers that came or went are looked for; a page that draws the network asks its router's table of nodes more often. */
const DISCOVER_MS = 4_000;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 5_000;

export interface Session {
  /** "closed": the login page; "connecting": the first connection; "lost": it was cut and is being made again. */
  readonly state: "connecting" | "connected" | "lost" | "closed";
  /** The user as the router names it; "" before it is known. */
  readonly user: string;
  /** The routers of the network, the one connected to first. */
  readonly routers: readonly RouterRef[];
  /** What the login may do; pages ask `can`. */
  readonly rights: Rights;
  /** The mechanisms that the listener offers, as far as known. */
  readonly offered: readonly string[];
  /** Why the last login failed. */
  readonly problem: string;
  /** The container id of the console's own connection. */
  readonly container: string;
  /** Whether the schema knows this operation on entities of that type and the login may do it. */
  readonly can: (operation: string, entity: Entity) => boolean;
}

const store = create<Session>((_set, get) => ({
  state: "connecting",
  user: "",
  routers: [],
  rights: NO_RIGHTS,
  offered: [],
  problem: "",
  container: "",
  can: (operation, entity) =>
    allows(get().rights, operation, entity) &&
    (isUntold(operation, entity) || (schemaNow().types[entity]?.operations.includes(operation) ?? false)),
}));

/** Connections are closed by an UPDATE that no router's schema tells of. */
const isUntold = (operation: string, entity: Entity): boolean => operation === "UPDATE" && entity === "connection";

/** Counts logins and logouts, so that what an earlier one began is dropped when it arrives. */
let generation = 0;

/** The WebSocket of the listener that served the page. */
function socketUrl(): string {
  const url = new URL("$management", window.location.href.replace(/[?#].*$/, ""));
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

/** What a login says: who, and the virtual host or tenant; by default the host that the page was loaded from. */
export interface Login {
  readonly credentials: Credentials;
  readonly host?: string;
}

/** Log in; the outcome stands in the session. Without credentials the listener's EXTERNAL or ANONYMOUS is tried. */
export async function login(given: Login): Promise<void> {
  generation += 1;
  const mine = generation;
  store.setState({ state: "connecting", problem: "" });
  try {
    await connect(given, mine);
  } catch (error) {
    if (mine !== generation) return;
    const offered = error instanceof ConnectError ? error.offered : [];
    // A first look without credentials that finds a login page is no failure.
    const expected = given.credentials.kind === "none" && error instanceof ConnectError && error.reason === "no mechanism";
    store.setState({ state: "closed", offered, problem: expected ? "" : messageOf(error) });
  }
}

async function connect(given: Login, mine: number): Promise<void> {
  const amqp = new AmqpConnection();
  await amqp.open(socketUrl(), given.host ?? window.location.hostname, given.credentials);
  if (mine !== generation) {
    amqp.close();
    return;
  }
  amqp.onLost = () => lose(given);
  setLink(amqp);
  try {
    await begin(amqp);
  } catch (error) {
    setLink(undefined);
    amqp.onLost = () => undefined;
    amqp.close();
    throw error;
  }
}

async function begin(amqp: AmqpConnection): Promise<void> {
  const rights = await fetchRights();
  if (rights.level === "none") throw new ConnectError("refused", "This login may not look at the router's management.", [...amqp.offered]);
  const [own, connections, user] = await Promise.all([ownRouter(amqp), ownConnections(amqp), ownUser(amqp), fetchSchema()]);
  const interior = await interiorOf(amqp, own, connections);
  if (link() !== amqp) return;
  const routers = routersOf(own, interior, (id) => (id === own.id ? connections : []));
  pollRouters(routers);
  store.setState({ state: "connected", routers, rights, user, offered: [...amqp.offered], container: amqp.container });
  void watchNetwork(amqp, own, interior);
}

async function ownUser(amqp: AmqpConnection): Promise<string> {
  const rows = await query(amqp, "", "connection", ["container", "user"]).catch(() => []);
  const user = rows.find((row) => row["container"] === amqp.container)?.["user"];
  return typeof user === "string" ? user : "";
}

/**
 * Look for routers that came or went, again and again while this connection is the one. Edges are found in the tables of
 * connections, which the poller asks for together with what the page wants of them.
 */
async function watchNetwork(amqp: AmqpConnection, own: RouterRef, known: readonly string[]): Promise<void> {
  let interior = known;
  const connectionsOf = (id: string): readonly Row[] => lastTable(id, "connection");
  const show = (): void => {
    const routers = routersOf(own, interior, connectionsOf);
    if (link() !== amqp || JSON.stringify(routers) === JSON.stringify(store.getState().routers)) return;
    pollRouters(routers);
    store.setState({ routers });
  };
  if (own.mode === "standalone") return;
  const forget = [addInterest({ wanted: EDGE_TABLES, everyMs: DISCOVER_MS }), onSnapshot(show)];
  while (link() === amqp) {
    await new Promise((resume) => setTimeout(resume, paceOf(DISCOVER_MS)));
    interior = await interiorOf(amqp, own, connectionsOf(own.id)).catch(() => interior);
    show();
  }
  forget.forEach((each) => each());
}

function lose(given: Login): void {
  setLink(undefined);
  markLost("the connection is lost");
  store.setState({ state: "lost" });
  notify("warning", "The connection to the router is lost", "The console connects again by itself.");
  void comeBack(given, generation);
}

async function comeBack(given: Login, mine: number): Promise<void> {
  for (let wait = FIRST_RETRY_MS; mine === generation; wait = Math.min(wait * 2, LAST_RETRY_MS)) {
    await new Promise((resume) => setTimeout(resume, wait * (0.5 + Math.random())));
    if (mine !== generation) return;
    try {
      await connect(given, mine);
      notify("success", "The connection to the router is back");
      return;
    } catch (error) {
      if (mine !== generation) return;
      if (error instanceof ConnectError && error.reason !== "unreachable") {
        logout(messageOf(error));
        return;
      }
    }
  }
}

/** Close the connection and forget the login. */
export function logout(problem = ""): void {
  generation += 1;
  link()?.close();
  setLink(undefined);
  forgetRouters();
  store.setState({ state: "closed", user: "", routers: [], rights: NO_RIGHTS, problem });
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The session: who is logged in, what the login may do, which routers there are, how the connection is. */
export const useSession = (): Session => store();
