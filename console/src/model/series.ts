/** Smoothing and stacking of the series of a chart. */
import type { History } from "./types";

/** Stacking rounds the times of samples down to multiples of this step. */
export const STEP_MS = 1_000;

/** Return the series with each value replaced by the mean of the values within `windowMs` up to it; missing samples stay missing. */
export function smoothed(history: History, windowMs: number): History {
  if (windowMs <= STEP_MS) return history;
  const { times, values } = history;
  let from = 0;
  let total = 0;
  let known = 0;
  const means = values.map((value, place): number | null => {
    if (value !== null) {
      total += value;
      known += 1;
    }
    while ((times[from] ?? 0) <= (times[place] ?? 0) - windowMs) {
      const leaving = values[from];
      if (leaving !== null && leaving !== undefined) {
        total -= leaving;
        known -= 1;
      }
      from += 1;
    }
    return value === null || known === 0 ? null : total / known;
  });
  return { times, values: means };
}

/** Return the series stacked: each value is the sum of its own and those of all series before it, second by second. */
export function stacked(histories: readonly History[]): History[] {
  const steps = histories.map(bySecond);
  const moments = [...new Set(steps.flatMap((step) => [...step.keys()]))].sort((one, other) => one - other);
  // A series without a sample in this second takes that of the second before: the routers answer at different times.
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
