/** Notices for the user: results of changes, refusals, losses of the connection. */

import { create } from "zustand";

/** One notice for the user. */
export interface Notice {
  readonly id: number;
  readonly kind: "success" | "info" | "warning" | "danger";
  readonly title: string;
  readonly text?: string;
  /** When the console raised the notice, in ms since 1970. */
  readonly at: number;
}

/** Notices that the list keeps; older ones are removed. */
const MAX_KEPT = 100;

interface Notices {
  /** Newest first. */
  readonly all: readonly Notice[];
  /** The notices on the page, until the user closes them or they time out. */
  readonly shown: readonly Notice[];
}

const store = create<Notices>(() => ({ all: [], shown: [] }));
let lastId = 0;

/** Show a notice and keep it in the list. */
export function notify(kind: Notice["kind"], title: string, text?: string): void {
  lastId += 1;
  const notice: Notice = { id: lastId, kind, title, at: Date.now(), ...(text === undefined ? {} : { text }) };
  store.setState(({ all, shown }) => ({ all: [notice, ...all].slice(0, MAX_KEPT), shown: [notice, ...shown].slice(0, 5) }));
}

/** Remove a notice from the page; the list keeps it. */
export function closeNotice(id: number): void {
  store.setState(({ shown }) => ({ shown: shown.filter((notice) => notice.id !== id) }));
}

/** Remove all notices from the page and the list. */
export function clearNotices(): void {
  store.setState({ all: [], shown: [] });
}

/** Return all notices and those on the page. */
export const useNotices = (): Notices => store();
