import { useEffect, useRef } from "react";

import { rowsOf } from "../../model/rows";
import type { Snapshot } from "../../model/types";
import { onSnapshot, useSession, useTables } from "../../store";
import { observe } from "./state";

const NODES = { "router.node": ["id", "nextHop", "cost", "index", "linkCosts"] } as const;
const TABLES = {
  connection: ["identity", "container", "host", "role", "dir", "properties", "user", "active"],
  "router.link": [
    "identity",
    "connectionId",
    "linkName",
    "linkType",
    "linkDir",
    "owningAddr",
    "capacity",
    "undeliveredCount",
    "unsettledCount",
    "deliveryCount",
    "settleRate",
  ],
  "router.address": ["key", "distribution", "remoteHostRouters"],
} as const;

/** Routers are looked for this often, so that one that died is shown within seconds. */
const NODES_MS = 1_000;
/** The picture is computed at most this often, however many routers answer meanwhile. */
const REDRAW_MS = 500;
/** Large networks are asked less often: from so many links on, every so many milliseconds. */
const PACES = [
  { links: 20_000, everyMs: 15_000 },
  { links: 3_000, everyMs: 5_000 },
  { links: 0, everyMs: 2_000 },
] as const;

/** Return how often to ask a network with so many links, in ms. */
const paceFor = (snapshot: Snapshot): number => {
  const links = snapshot.routers.reduce((sum, router) => sum + rowsOf(router, "router.link").length, 0);
  return PACES.find((pace) => links >= pace.links)?.everyMs ?? 2_000;
};

/** Keep the page's picture of the network fresh while the component is mounted. */
export function useNetwork(): void {
  const { user } = useSession();
  const snapshot = useTables(NODES, NODES_MS);
  useTables(TABLES, paceFor(snapshot));
  const latest = useRef(snapshot);
  latest.current = snapshot;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = (): void => {
      timer = undefined;
      observe(latest.current, user);
    };
    look();
    const stop = onSnapshot((next) => {
      latest.current = next;
      timer ??= setTimeout(look, REDRAW_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [user]);
}
