import { useEffect, useMemo } from "react";
import { useSearchParams } from "react-router-dom";

import { ALARM_TABLES, alarms } from "../../model/alarms";
import { shownRate } from "../../model/numbers";
import { DOWN_OF_ROUTER, DOWN_TABLES, REFUSED_OF_ROUTER } from "../../model/down";
import { activeAddresses, delayedConnections, totalsOf, type Totals } from "../../model/overview";
import { LineChart, Page, useNow } from "../../parts";
import { record, useHistory, type Wanted } from "../../store";
import { useSupportedTables, useTablePairs, useTableAbsence } from "../common/tables";
import { Figure, Panel } from "../common/Panel";
import { Alarms } from "./Alarms";
import { Configuration } from "./Configuration";
import { Down, RefusedClients } from "./Down";
import { Active, Delayed, Routers } from "./Tables";

/** Intervals of the requests, multiples of the shortest (see isDue): the rows of routers, for the rates, change most often. */
const RATES_MS = 2_000;
const TABLES_MS = 4_000;
const ALARMS_MS = 12_000;
const ROUTERS: Wanted = {
  router: [
    "identity", "id", "mode", "version", "uptimeSeconds", "deliveriesIngress", "deliveriesEgress", "deliveriesTransit",
    "connectionCount", "linkCount", "addrCount", "deliveriesStuck", "blockedLinkCount", "logLinesLost",
    ...DOWN_OF_ROUTER, ...REFUSED_OF_ROUTER,
  ],
};
const TABLES: Wanted = {
  "router.address": [
    "identity", "name", "key", "distribution", "subscriberCount", "deliveriesIngress", "deliveriesEgress", "deliveriesTransit",
  ],
  "router.link": [
    "identity", "linkType", "linkDir", "owningAddr", "connectionId", "undeliveredCount", "unsettledCount", "zeroCreditSeconds",
    "deliveriesStuck", "deliveriesDelayed1Sec", "deliveriesDelayed10Sec",
  ],
  connection: ["identity", "container", "host", "user", "role", "dir"],
};
const RATES = [["ingress", "In"], ["egress", "Out"], ["transit", "Transit"]] as const;
const TEN_MINUTES_MS = 600_000;

/** Shows the operator the network at a glance: figures, alarms, busy addresses, slow connections, routers and configuration. */
export default function Overview() {
  const snapshot = useSupportedTables(ROUTERS, RATES_MS);
  useSupportedTables(TABLES, TABLES_MS);
  useSupportedTables(DOWN_TABLES, TABLES_MS);
  useSupportedTables(ALARM_TABLES, ALARMS_MS);
  const now = useNow();
  const [search] = useSearchParams();
  const routers = useTablePairs(snapshot, "router");
  const addresses = useTablePairs(snapshot, "router.address");
  const links = useTablePairs(snapshot, "router.link");
  const totals = useMemo(() => totalsOf(snapshot, routers, addresses), [snapshot, routers, addresses]);
  const nowRounded = Math.floor(now / 5_000) * 5_000;
  const found = useMemo(() => alarms(snapshot, nowRounded), [snapshot, nowRounded]);
  const active = useMemo(() => activeAddresses(snapshot, addresses, 10), [snapshot, addresses]);
  const delayed = useMemo(() => delayedConnections(snapshot, links, 5), [snapshot, links]);
  const addressesAbsence = useTableAbsence(snapshot, "router.address");
  const linksAbsence = useTableAbsence(snapshot, "router.link");
  const routersAbsence = useTableAbsence(snapshot, "router");
  useRecorded(totals, snapshot.at);
  const at = search.get("at");
  useEffect(() => {
    if (at !== null) document.getElementById(`overview-${at}`)?.scrollIntoView();
  }, [at]);
  return (
    <Page title="Overview">
      <Figures totals={totals} routers={snapshot.routers.length} />
      <div className="console-panels">
        <Down snapshot={snapshot} />
        <Alarms alarms={found} />
        <Rates />
        <Panel title="Most active addresses" absence={addressesAbsence}>
          <Active addresses={active} />
        </Panel>
        <Panel title="Connections with delayed deliveries" absence={linksAbsence}>
          <Delayed connections={delayed} />
        </Panel>
        <RefusedClients snapshot={snapshot} />
        <Panel title="Routers" absence={routersAbsence === "refused" ? routersAbsence : undefined} isWide>
          <Routers snapshot={snapshot} pairs={routers} />
        </Panel>
        <Configuration snapshot={snapshot} />
      </div>
    </Page>
  );
}

function Figures({ totals, routers }: { totals: Totals; routers: number }) {
  const plain = (value: number | null): string => (value === null ? "–" : value.toLocaleString());
  return (
    <dl className="console-figures">
      <Figure name="Deliveries in" value={shownRate(totals.ingress)} unit="/s" />
      <Figure name="Deliveries out" value={shownRate(totals.egress)} unit="/s" />
      <Figure name="Transit" value={shownRate(totals.transit)} unit="/s" />
      <Figure name="In flight" value={plain(totals.inFlight)} />
      <Figure name="Connections" value={plain(totals.connections)} />
      <Figure name="Addresses" value={plain(totals.addresses)} />
      <Figure name="Routers" value={plain(routers)} />
    </dl>
  );
}

/** Record the rates of each answer, for the chart. */
function useRecorded(totals: Totals, at: number): void {
  const { ingress, egress, transit } = totals;
  useEffect(() => {
    const second = Math.floor(at / 1_000) * 1_000;
    if (second === 0 || ingress === null) return;
    record("overview:ingress", second, ingress);
    record("overview:egress", second, egress);
    record("overview:transit", second, transit);
  }, [ingress, egress, transit, at]);
}

function Rates() {
  const histories = [useHistory("overview:ingress"), useHistory("overview:egress"), useHistory("overview:transit")];
  const series = RATES.map(([, label], place) => ({ label, times: [], values: [], ...histories[place] }));
  return (
    <Panel title="Deliveries per second, last 10 minutes">
      <LineChart label="Deliveries per second" series={series} unit="/s" height={200} lastMs={TEN_MINUTES_MS} />
    </Panel>
  );
}
