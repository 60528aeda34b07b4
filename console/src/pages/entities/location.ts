/** The part of the Entities page that its URL names: #/entities/TYPE?router=A&identity=...&filter=...&do=edit */

import { useLocation, useNavigate } from "react-router-dom";

import type { Entity } from "../../model/types";
import { secondPart } from "../common/path";

/** What the Entities page shows. */
export interface EntityLocation {
  readonly entity: Entity;
  /** The id of the chosen router; "" for all. */
  readonly router: string;
  /** The identity of the entity that is shown in full; "" for the table. */
  readonly identity: string;
  readonly filter: string;
  /** The form that is open; "" for none. */
  readonly action: "" | "create" | "edit";
}

const FIRST: Entity = "connection";

/** Return the location that a path and its query name. */
export function parseLocation(pathname: string, search: string): EntityLocation {
  const query = new URLSearchParams(search);
  const action = query.get("do");
  return {
    entity: secondPart(pathname) || FIRST,
    router: query.get("router") ?? "",
    identity: query.get("identity") ?? "",
    filter: query.get("filter") ?? "",
    action: action === "create" || action === "edit" ? action : "",
  };
}

/** Return the route of a location, for a link of the console. */
export function locationPath(location: Partial<EntityLocation>): string {
  const { entity = FIRST, router, identity, filter, action } = location;
  const query = new URLSearchParams(
    Object.entries({ router, identity, filter, do: action }).flatMap(([key, value]) => (value ? [[key, value]] : [])),
  ).toString();
  return `/entities/${encodeURIComponent(entity)}${query === "" ? "" : `?${query}`}`;
}

/** Return the current location, and a function that goes to another. A change of the filter adds no entry to the browser's history. */
export function useEntityLocation(): readonly [EntityLocation, (change: Partial<EntityLocation>) => void] {
  const { pathname, search } = useLocation();
  const navigate = useNavigate();
  const location = parseLocation(pathname, search);
  const go = (change: Partial<EntityLocation>): void => {
    navigate(locationPath({ ...location, ...change }), { replace: "filter" in change });
  };
  return [location, go];
}
