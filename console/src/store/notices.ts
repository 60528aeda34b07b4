/** What the console has to say: results of changes, refusals, losses of the connection. */

import { create } from "zustand";

export interface Notice {
  readonly id: number;
  readonly kind: "success" | "info" | "warning" | "danger";
  readonly title: string;
  readonly text?: string;
  readonly at: number;
}

/** Older notices are forgotten. */
const MAX_KEPT = 100;

interface Notices {
  /** Newest first. */
  readonly all: readonly Notice[];
  /** The notices that stand on the page until they are closed or time out. */
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

/** Take a notice off the page; the list keeps it. */
export function closeNotice(id: number): void {
  store.setState(({ shown }) => ({ shown: shown.filter((notice) => notice.id !== id) }));
}

/** Forget all notices. */
export function clearNotices(): void {
  store.setState({ all: [], shown: [] });
}

/** All notices and those that are shown. */
export const useNotices = (): Notices => store();
