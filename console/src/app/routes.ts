import type { ComponentType } from "react";

/** A page of the console. The route.ts of each folder under pages/ exports one by default. */
export interface PageRoute {
  /** The path behind the #, such as "/topology" or "/entities/*". */
  readonly path: string;
  /** The text of the link in the navigation. */
  readonly title: string;
  /** The group of the navigation that lists the page. */
  readonly group: "Network" | "Traffic" | "Details";
  /** Place within the navigation, lowest first. */
  readonly order: number;
  /** Load the page's component; called when the page is first opened. */
  readonly load: () => Promise<{ default: ComponentType }>;
}

const found = import.meta.glob<{ default: PageRoute }>("../pages/*/route.ts", { eager: true });

/** All pages, in the order of the navigation. */
export const ROUTES: readonly PageRoute[] = Object.values(found)
  .map((module) => module.default)
  .sort((one, other) => one.order - other.order);

/** The groups of the navigation, in their order. */
export const GROUPS: readonly PageRoute["group"][] = ["Network", "Traffic", "Details"];
