/** The store's functions and hooks for pages and parts. */

export { ManagementError } from "../amqp/errors";
export type { ManagementRequest } from "../amqp/management";
export { MAX_SAMPLES, MAX_SERIES, follow, followed, historyKey, parseSeriesKey, record, unfollow, useHistories, useHistory } from "./history";
export type { SeriesKey } from "./history";
export { pollIntervalMs, type Wanted } from "./interests";
export { manage } from "./current";
export { clearNotices, closeNotice, notify, useNotices, type Notice } from "./notices";
export type { Level, Rights } from "./rights";
export { useSchema } from "./schema";
export { login, logout, useSession, type Session } from "./session";
export { onSnapshot, refresh, useTables } from "./snapshot";
