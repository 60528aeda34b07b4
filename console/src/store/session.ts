/** The session: login, loss of the connection, reconnection and logout. */

import { create } from "zustand";

import { AmqpConnection } from "../amqp/connection";
import { ConnectError } from "../amqp/errors";
import { query } from "../amqp/management";
import type { Credentials } from "../amqp/mechanisms";
import type { Entity, RouterRef, Row } from "../model/types";
import { EDGE_TABLES, fetchInteriorIds, fetchConnections, fetchConnectedRouter, routersOf } from "./discovery";
import { pollIntervalMs } from "./interests";
import { currentConnection, setCurrentConnection } from "./current";
import { notify } from "./notices";
import { NO_RIGHTS, allows, fetchRights, type Rights } from "./rights";
import { fetchSchema, schemaNow } from "./schema";
import { addInterest, forgetRouters, lastTable, markLost, onSnapshot, pollRouters } from "./snapshot";

/** Time between two searches for routers that joined or left; the Topology page requests the table of nodes more often. */
const DISCOVER_MS = 4_000;
const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 5_000;

/** The user's session, as components see it. */
export interface Session {
  /** "closed": the login page; "connecting": the first connection; "lost": the console reconnects. */
  readonly state: "connecting" | "connected" | "lost" | "closed";
  /** The user name that the router reports; "" before it is known. */
  readonly user: string;
  /** The routers of the network, the connected one first. */
  readonly routers: readonly RouterRef[];
  /** The rights of the login; pages call `can`. */
  readonly rights: Rights;
  /** The SASL mechanisms that the listener offers, as far as known. */
  readonly offered: readonly string[];
  /** Why the last login failed; "" if it did not. */
  readonly problem: string;
  /** The container id of the console's connection. */
  readonly container: string;
  /** Return whether the schema has this operation for entities of that type and the login may do it. */
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
    (isOutsideSchema(operation, entity) || (schemaNow().types[entity]?.operations.includes(operation) ?? false)),
}));

/** An UPDATE closes a connection, although the schema of Qpid Dispatch does not list the operation. */
const isOutsideSchema = (operation: string, entity: Entity): boolean => operation === "UPDATE" && entity === "connection";

/** Counts logins and logouts, so that late results of an earlier login are dropped. */
let generation = 0;

/** Return the URL of the WebSocket of the listener that served the page. */
function socketUrl(): string {
  const url = new URL("$management", window.location.href.replace(/[?#].*$/, ""));
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

/** What the user logs in with. */
export interface LoginRequest {
  readonly credentials: Credentials;
  /** The virtual host or tenant; by default the host that served the page. */
  readonly host?: string;
}

/** Log in; the session holds the outcome. Without credentials, try EXTERNAL and ANONYMOUS. */
export async function login(request: LoginRequest): Promise<void> {
  generation += 1;
  const attempt = generation;
  store.setState({ state: "connecting", problem: "" });
  try {
    await connect(request, attempt);
  } catch (error) {
    if (attempt !== generation) return;
    const offered = error instanceof ConnectError ? error.offered : [];
    // The first attempt is made without credentials; a listener that wants some is no failure.
    const expected = request.credentials.kind === "none" && error instanceof ConnectError && error.reason === "no mechanism";
    store.setState({ state: "closed", offered, problem: expected ? "" : messageOf(error) });
  }
}

async function connect(request: LoginRequest, attempt: number): Promise<void> {
  const amqp = new AmqpConnection();
  await amqp.open(socketUrl(), request.host ?? window.location.hostname, request.credentials);
  if (attempt !== generation) {
    amqp.close();
    return;
  }
  amqp.onLost = () => beginReconnecting(request);
  setCurrentConnection(amqp);
  try {
    await startSession(amqp);
  } catch (error) {
    setCurrentConnection(undefined);
    amqp.onLost = () => undefined;
    amqp.close();
    throw error;
  }
}

async function startSession(amqp: AmqpConnection): Promise<void> {
  const rights = await fetchRights();
  if (rights.level === "none") throw new ConnectError("refused", "This login has no management rights.", [...amqp.offered]);
  const [connected, connections, user] = await Promise.all([fetchConnectedRouter(amqp), fetchConnections(amqp), fetchUser(amqp), fetchSchema()]);
  const interiorIds = await fetchInteriorIds(amqp, connected, connections);
  if (currentConnection() !== amqp) return;
  amqp.completeLogin();
  const routers = routersOf(connected, interiorIds, (id) => (id === connected.id ? connections : []));
  pollRouters(routers);
  store.setState({ state: "connected", routers, rights, user, offered: [...amqp.offered], container: amqp.container });
  void watchNetwork(amqp, connected, interiorIds);
}

async function fetchUser(amqp: AmqpConnection): Promise<string> {
  const rows = await query(amqp, "", "connection", ["container", "user"]).catch(() => []);
  const user = rows.find((row) => row["container"] === amqp.container)?.["user"];
  return typeof user === "string" ? user : "";
}

/**
 * Look for routers that joined or left as long as this connection is open. The tables of connections list the edge routers; the
 * poller requests them together with the attributes that the page shows.
 */
async function watchNetwork(amqp: AmqpConnection, connected: RouterRef, initialIds: readonly string[]): Promise<void> {
  let interiorIds = initialIds;
  const connectionsOf = (id: string): readonly Row[] => lastTable(id, "connection");
  const publish = (): void => {
    const routers = routersOf(connected, interiorIds, connectionsOf);
    if (currentConnection() !== amqp || JSON.stringify(routers) === JSON.stringify(store.getState().routers)) return;
    pollRouters(routers);
    store.setState({ routers });
  };
  if (connected.mode === "standalone") return;
  const stopFunctions = [addInterest({ wanted: EDGE_TABLES, everyMs: DISCOVER_MS }), onSnapshot(publish)];
  while (currentConnection() === amqp) {
    await new Promise((resume) => setTimeout(resume, pollIntervalMs(DISCOVER_MS)));
    interiorIds = await fetchInteriorIds(amqp, connected, connectionsOf(connected.id)).catch(() => interiorIds);
    publish();
  }
  stopFunctions.forEach((each) => each());
}

function beginReconnecting(request: LoginRequest): void {
  setCurrentConnection(undefined);
  markLost("the connection is lost");
  store.setState({ state: "lost" });
  notify("warning", "The connection to the router is lost", "The console connects again by itself.");
  void reconnect(request, generation);
}

async function reconnect(request: LoginRequest, attempt: number): Promise<void> {
  for (let wait = MIN_RETRY_MS; attempt === generation; wait = Math.min(wait * 2, MAX_RETRY_MS)) {
    await new Promise((resume) => setTimeout(resume, wait * (0.5 + Math.random())));
    if (attempt !== generation) return;
    try {
      await connect(request, attempt);
      notify("success", "The connection to the router is back");
      return;
    } catch (error) {
      if (attempt !== generation) return;
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
  currentConnection()?.close();
  setCurrentConnection(undefined);
  forgetRouters();
  store.setState({ state: "closed", user: "", routers: [], rights: NO_RIGHTS, problem });
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Return the session: state of the connection, user, rights and routers. */
export const useSession = (): Session => store();
