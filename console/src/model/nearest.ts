/** Moving through the picture by arrow keys. */

/** A point of the picture, in its units. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The key that moves in a direction. */
export type Direction = "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight";

const TOWARDS: Readonly<Record<Direction, Point>> = {
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
};

/** Return whether the key is an arrow key. */
export const isDirection = (key: string): key is Direction => key in TOWARDS;

/**
 * Return the id of the nearest point in that direction; undefined if there is none. Points to the side count as farther. If
 * `from` has no point, return the first id.
 */
export function nearest(points: ReadonlyMap<string, Point>, from: string, direction: Direction): string | undefined {
  const start = points.get(from);
  if (start === undefined) return points.keys().next().value;
  const towards = TOWARDS[direction];
  let best: { id: string; distance: number } | undefined;
  for (const [id, point] of points) {
    const [x, y] = [point.x - start.x, point.y - start.y];
    const ahead = x * towards.x + y * towards.y;
    const aside = Math.abs(x * towards.y) + Math.abs(y * towards.x);
    // Skip points that lie rather to the side than ahead.
    if (id === from || ahead <= 0 || aside > ahead * 2) continue;
    const distance = ahead + 2 * aside;
    if (best === undefined || distance < best.distance) best = { id, distance };
  }
  return best?.id;
}
