/** What AMQP values become: ulong and long beyond 2^53 are bigint, symbols are strings, timestamps are numbers (ms), binaries Uint8Array. */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly Value[]
  | { readonly [key: string]: Value };

/** The attributes of one entity. */
export type Row = Readonly<Record<string, Value>>;

/** A short entity name as in the schema: "router.link", "connection", "router.address", "router.node", "vhost", ... */
export type Entity = string;

/** The tables that one router answered with. */
export interface RouterTables {
  readonly id: string;
  /** "" for the router that the console is connected to, else "_topo/0/ID/" or "_edge/ID/". */
  readonly address: string;
  readonly tables: Readonly<Partial<Record<Entity, readonly Row[]>>>;
  /** When the newest of the tables arrived, in ms since 1970; 0 before the first. */
  readonly at: number;
  /** When each of the tables arrived, in ms since 1970; see arrivedAt. */
  readonly arrived?: Readonly<Partial<Record<Entity, number>>>;
  /** Why the last poll failed, wholly or in part: "no answer within 5 s", or the description of a refusal. */
  readonly error?: string;
  /** Why tables of the router are not shown, by entity: what the policy or the router's version refuses. */
  readonly refused?: Readonly<Partial<Record<Entity, string>>>;
}

/** All tables of all routers as last seen. */
export interface Snapshot {
  readonly at: number;
  readonly routers: readonly RouterTables[];
}

/** One attribute of an entity type, from GET-SCHEMA. An enum's `type` is the list of its values. */
export interface SchemaAttribute {
  readonly type: string | readonly string[];
  readonly default?: Value;
  readonly required: boolean;
  readonly unique: boolean;
  readonly deprecated: boolean;
  /** A counter or gauge that may be drawn as a chart. */
  readonly graph: boolean;
  /** Whether CREATE and UPDATE take it; both false for all attributes of a router of the older kind, which does not tell. */
  readonly create: boolean;
  readonly update: boolean;
  readonly description: string;
}

/** One entity type, from GET-SCHEMA. */
export interface SchemaType {
  readonly name: Entity;
  readonly fullName: string;
  readonly attributes: Readonly<Record<string, SchemaAttribute>>;
  /** Operation names in capitals: "READ", "CREATE", "UPDATE", "DELETE", ... */
  readonly operations: readonly string[];
  readonly description: string;
  readonly deprecated: boolean;
  readonly singleton: boolean;
  readonly references: readonly string[];
}

/** The schema of the router that the console is connected to; without types until it has arrived. */
export interface Schema {
  readonly prefix: string;
  readonly types: Readonly<Record<Entity, SchemaType>>;
}

/** One router of the network, as the console reaches it. */
export interface RouterRef {
  readonly id: string;
  readonly address: string;
  readonly mode: "standalone" | "interior" | "edge" | "unknown";
}

/** A series kept while the page is open. A null value marks a sample that did not arrive. */
export interface History {
  readonly times: readonly number[];
  readonly values: readonly (number | null)[];
}
