import { create } from "zustand";

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
];
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** One clock for all relative times on the page. */
const clock = create<{ now: number }>(() => ({ now: Date.now() }));
setInterval(() => clock.setState({ now: Date.now() }), 1_000);

/** Return the time `ms` relative to `now`, such as "3 minutes ago"; both in ms since 1970. */
export function agoText(ms: number, now: number): string {
  const age = ms - now;
  const [unit, size] = UNITS.find(([, length]) => Math.abs(age) >= length) ?? ["second", 1_000];
  return relative.format(Math.trunc(age / size), unit);
}

/** Return date and time of `ms` (since 1970) in the viewer's time zone; "" if `ms` is no valid time. */
export function momentText(ms: number): string {
  return Number.isFinite(ms) && Math.abs(ms) <= 8.64e15 ? absolute.format(ms) : "";
}

/** Shows how long ago the time `ms` (since 1970) was; the tooltip has its date and time in the viewer's zone. */
export function Ago({ ms }: { ms: number }) {
  const { now } = clock();
  const moment = momentText(ms);
  if (moment === "") return null;
  return (
    <time dateTime={new Date(ms).toISOString()} title={moment}>
      {agoText(ms, now)}
    </time>
  );
}

/** Return the current time in ms since 1970, and redraw the component each second. */
export function useNow(): number {
  return clock().now;
}
