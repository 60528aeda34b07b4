/** A value of AMQP: ulong and long beyond 2^53 are bigint, symbols are strings, timestamps are numbers (ms since 1970), binaries Uint8Array. */
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

/** The tables of one router as last received. */
export interface RouterTables {
  readonly id: string;
  /** The prefix of its management node's address: "" for the connected router, else "_topo/0/ID/" or "_edge/ID/". */
  readonly address: string;
  readonly tables: Readonly<Partial<Record<Entity, readonly Row[]>>>;
  /** When the newest of the tables arrived, in ms since 1970; 0 before the first. */
  readonly at: number;
  /** When each table arrived, in ms since 1970; see arrivedAt. */
  readonly arrived?: Readonly<Partial<Record<Entity, number>>>;
  /** The tables with all attributes of their rows; other tables have those that some page wants. */
  readonly whole?: ReadonlySet<Entity>;
  /** Why the last poll failed, wholly or in part: "no answer within 5 s", or the description of a refusal. */
  readonly error?: string;
  /** It has left the network, or did not answer when it was last asked for itself: its tables are old. */
  readonly isSilent?: boolean;
  /** The workers of the router that are missing in some table, and why; absent if none is. */
  readonly missing?: string;
  /** The descriptions of refusals, by the entity that the policy or the router's version refuses. */
  readonly refused?: Readonly<Partial<Record<Entity, string>>>;
}

/** The tables of all routers as last received. */
export interface Snapshot {
  /** When the snapshot was made, in ms since 1970; 0 before the first. */
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
  /** The attribute is a counter or gauge that charts can show. */
  readonly graph: boolean;
  /** Whether CREATE and UPDATE take the attribute; Qpid Dispatch does not report this, both are false. */
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
  /** The router has exactly one entity of this type. */
  readonly singleton: boolean;
  readonly references: readonly string[];
}

/** The schema of the connected router; without types until it has arrived. */
export interface Schema {
  readonly prefix: string;
  readonly types: Readonly<Record<Entity, SchemaType>>;
}

/** One router of the network, with the address that reaches it. */
export interface RouterRef {
  readonly id: string;
  /** See RouterTables. */
  readonly address: string;
  readonly mode: "standalone" | "interior" | "edge" | "unknown";
  /** The number of workers that answer as this router, if it has several. */
  readonly workers?: number;
}

/** A series of samples: times in ms since 1970, and values; null marks a missing sample. */
export interface History {
  readonly times: readonly number[];
  readonly values: readonly (number | null)[];
}
