import { useEffect, useRef } from "react";

import { tableOf } from "../../model/rows";
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

/** Interval at which the table of nodes is requested, so that the picture shows a dead router within seconds. */
const NODES_MS = 1_000;
/** Least time between two computations of the picture. */
const REDRAW_MS = 500;
/** The interval by the number of links: large networks are polled less often. */
const INTERVALS = [
  { links: 20_000, everyMs: 15_000 },
  { links: 3_000, everyMs: 5_000 },
  { links: 0, everyMs: 2_000 },
] as const;

/** Return the interval of requests, in ms, for the links of a snapshot. */
const intervalMsFor = (snapshot: Snapshot): number => {
  const links = snapshot.routers.reduce((sum, router) => sum + tableOf(router, "router.link").length, 0);
  return INTERVALS.find((interval) => links >= interval.links)?.everyMs ?? 2_000;
};

/** Keep the state of the Topology page fresh while the component is mounted. */
export function useNetwork(): void {
  const { user } = useSession();
  const snapshot = useTables(NODES, NODES_MS);
  useTables(TABLES, intervalMsFor(snapshot));
  const latest = useRef(snapshot);
  latest.current = snapshot;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const update = (): void => {
      timer = undefined;
      observe(latest.current, user);
    };
    update();
    const stop = onSnapshot((next) => {
      latest.current = next;
      timer ??= setTimeout(update, REDRAW_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [user]);
}
