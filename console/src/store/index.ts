/** The store of the console, as pages and parts use it. */

export { ManagementError } from "../amqp/errors";
export type { ManagementRequest } from "../amqp/management";
export { MAX_SAMPLES, MAX_SERIES, follow, followed, historyKey, parseKey, record, unfollow, useHistories, useHistory } from "./history";
export type { SeriesKey } from "./history";
export type { Wanted } from "./interests";
export { manage } from "./link";
export { clearNotices, closeNotice, notify, useNotices, type Notice } from "./notices";
export type { Level, Rights } from "./rights";
export { useSchema } from "./schema";
export { login, logout, useSession, type Session } from "./session";
export { onSnapshot, refresh, useTables } from "./snapshot";
