/** Series of a chart: smoothed over a window, and stacked on each other. */
import type { History } from "./types";

/** Samples within so many ms of each other count as of one moment when series are stacked. */
export const STEP_MS = 1_000;

/** Return the mean of each sample and those within `windowMs` before it; gaps stay gaps. */
export function smoothed(history: History, windowMs: number): History {
  if (windowMs <= STEP_MS) return history;
  const { times, values } = history;
  let from = 0;
  let sum = 0;
  let known = 0;
  const means = values.map((value, place): number | null => {
    if (value !== null) {
      sum += value;
      known += 1;
    }
    while ((times[from] ?? 0) <= (times[place] ?? 0) - windowMs) {
      const gone = values[from];
      if (gone !== null && gone !== undefined) {
        sum -= gone;
        known -= 1;
      }
      from += 1;
    }
    return value === null || known === 0 ? null : sum / known;
  });
  return { times, values: means };
}

/** Return the series stacked on each other: each is its own value and that of all before it, second by second. */
export function stacked(histories: readonly History[]): History[] {
  const steps = histories.map(bySecond);
  const moments = [...new Set(steps.flatMap((step) => [...step.keys()]))].sort((one, other) => one - other);
  // A sample that did not arrive in this very second is that of the one before: polls of routers drift past each other.
  const at = (step: Map<number, number | null>, moment: number): number | null =>
    step.get(moment) ?? step.get(moment - STEP_MS) ?? null;
  const below = moments.map(() => 0);
  return steps.map((step) => ({
    times: moments,
    values: moments.map((moment, place) => {
      const own = at(step, moment);
      below[place] = (below[place] ?? 0) + (own ?? 0);
      return own === null ? null : (below[place] ?? 0);
    }),
  }));
}

function bySecond({ times, values }: History): Map<number, number | null> {
  return new Map(times.map((time, place) => [Math.floor(time / STEP_MS) * STEP_MS, values[place] ?? null]));
}
