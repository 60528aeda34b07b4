/** A management node whose every text is hostile: 10 kB with markup, control characters and marks that turn the reading direction. */

import type { Message } from "rhea";

import type { Answer } from "./large";

/** A script, quotes, marks that turn the reading direction, control characters, and 10 kB without a place to break. */
export const STRANGE = `<script>window.hit=1</script><img src=x onerror="window.hit=1">"'\u202egnp.exe\u2066\u0000\u001b[31m${"x".repeat(10_000)}`;
/** The beginning of STRANGE as the console shows it. */
export const SHOWN = `<script>window.hit=1</script><img src=x onerror="window.hit=1">"'<U+202E>gnp`;

/** The time of the log entries in s since 1970, and its text in the browser's time zone. */
const LOGGED_S = 1_700_000_000;
export const LOGGED = "14 Nov 2023, 23:13:20";

const PREFIX = "org.apache.qpid.dispatch.";
/** The attributes of the types that pages request. Those in NUMBERS count up, and those outside of CELLS hold STRANGE. */
const TYPES: Readonly<Record<string, string>> = {
  router: "identity id mode version deliveriesIngress deliveriesEgress",
  "router.node": "identity id index nextHop cost",
  connection: "identity container host user role dir properties",
  "router.link":
    "identity linkName linkType linkDir owningAddr connectionId deliveryCount deliveriesDelayed1Sec deliveriesStuck zeroCreditSeconds ingressHistogram",
  "router.address": "identity key distribution deliveriesIngress deliveriesEgress",
  "router.config.address": "identity name prefix",
  listener: "identity name role host port",
  connector: "identity name host connectionStatus connectionMsg",
  sslProfile: "identity name certificateEnds",
  recordLog: "identity name recordsLost",
  finding: "identity severity entity section message",
  denial: "identity at operation user host vhost rule reason about",
  authLockout: "identity user host locked",
  policy: "identity enableVhostPolicy",
  vhost: "identity hostname aliases groups",
  vhostStats: "identity hostname quotaAlarmsRaised perUserState",
  log: "identity module enable",
  logStats: "identity name infoCount",
};
const NUMBERS = /^(?:deliver|zeroCredit|recordsLost|infoCount)/;

/** The values of attributes that peers cannot choose; row 0 sends and row 1 receives. */
const CELLS: Readonly<Record<string, (row: number) => unknown>> = {
  identity: String,
  connectionId: String,
  index: () => 0,
  cost: () => null,
  nextHop: () => "(self)",
  mode: () => "interior",
  role: () => "normal",
  dir: () => "in",
  linkType: () => "endpoint",
  linkDir: (row) => (row === 0 ? "in" : "out"),
  owningAddr: () => `M0${STRANGE}`,
  key: () => `M0${STRANGE}`,
  ingressHistogram: (row) => (row === 0 ? null : Array.from({ length: 128 }, () => Date.now() % 1_000_000)),
  properties: () => ({ product: STRANGE }),
  connectionStatus: () => "FAILED",
  certificateEnds: () => Math.floor(Date.now() / 1_000) + 86_400,
  severity: () => "problem",
  operation: (row) => (row === 0 ? "login" : STRANGE),
  at: () => Date.now(),
  locked: () => true,
  enableVhostPolicy: () => false,
  groups: () => ({ [STRANGE]: { users: STRANGE, sources: STRANGE } }),
  quotaAlarmsRaised: () => [STRANGE],
  perUserState: () => ({ [STRANGE]: [STRANGE] }),
};

const columnsOf = (type: string): readonly string[] => TYPES[type]?.split(" ") ?? [];
const cell = (column: string, row: number): unknown =>
  (CELLS[column] ?? (NUMBERS.test(column) ? () => Date.now() % 1_000_000 : () => STRANGE))(row);

/** The operations of the type "management". */
function schema(): unknown {
  const attribute = (column: string): unknown => ({
    type: NUMBERS.test(column) ? "integer" : "string",
    graph: NUMBERS.test(column),
    create: true,
    description: STRANGE,
  });
  const types = Object.keys(TYPES).map((type): [string, unknown] => [
    type,
    {
      fullyQualifiedType: PREFIX + type,
      operations: ["READ", "CREATE", "UPDATE", "DELETE"],
      description: STRANGE,
      attributes: Object.fromEntries(columnsOf(type).map((column) => [column, attribute(column)])),
    },
  ]);
  const management = { fullyQualifiedType: `${PREFIX}management`, operations: Object.keys(ANSWERS), attributes: {} };
  return { prefix: PREFIX, entityTypes: { ...Object.fromEntries(types), management } };
}

/** The answers to operations other than QUERY. */
const ANSWERS: Readonly<Record<string, () => unknown>> = {
  "GET-MGMT-NODES": () => [],
  "GET-SCHEMA": schema,
  "GET-LOG": () => ["info", STRANGE].map((level) => [STRANGE, level, STRANGE, STRANGE, 1, LOGGED_S]),
  EXPLAIN: () => ({ verdict: STRANGE, rule: STRANGE, consumers: [{ container: STRANGE, link: STRANGE, waitsFor: "credit", unsettled: 1 }] }),
  "EXPLAIN-POLICY": () => ({ allowed: false, rule: STRANGE, steps: [{ what: STRANGE, found: STRANGE, why: STRANGE }], settings: { [STRANGE]: STRANGE } }),
};

/** Reply with hostile texts; operations that change an entity are refused with one. */
export const strangers: Answer = (_address, message: Message) => {
  const properties = (message.application_properties ?? {}) as Readonly<Record<string, unknown>>;
  const operation = String(properties["operation"]);
  if (operation !== "QUERY") {
    const answer = ANSWERS[operation];
    return answer === undefined ? { status: 501, body: {}, description: STRANGE } : { status: 200, body: answer() };
  }
  const { attributeNames: requested } = message.body as { attributeNames: readonly string[] };
  const columns = requested.length > 0 ? requested : columnsOf(String(properties["entityType"]).replace(PREFIX, ""));
  const rows = properties["offset"] === 0 ? [0, 1] : [];
  return { status: 200, body: { attributeNames: columns, results: rows.map((row) => columns.map((column) => cell(column, row))) } };
};
