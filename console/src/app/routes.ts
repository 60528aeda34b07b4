import type { ComponentType } from "react";

/** One page of the console. Each folder under pages/ has a route.ts whose default export is one of these. */
export interface PageRoute {
  /** The path behind the #, such as "/topology" or "/entities/*". */
  readonly path: string;
  readonly title: string;
  /** The heading of the navigation below which the page stands. */
  readonly group: "Network" | "Traffic" | "Details";
  /** Place within the navigation, lowest first. */
  readonly order: number;
  /** Load the page's component; called when the page is first opened. */
  readonly load: () => Promise<{ default: ComponentType }>;
}

const found = import.meta.glob<{ default: PageRoute }>("../pages/*/route.ts", { eager: true });

/** Every page there is, in the order of the navigation. */
export const ROUTES: readonly PageRoute[] = Object.values(found)
  .map((module) => module.default)
  .sort((one, other) => one.order - other.order);

/** The headings of the navigation in their order. */
export const GROUPS: readonly PageRoute["group"][] = ["Network", "Traffic", "Details"];
