/** What of the entities is looked at, as the address says: #/entities/TYPE?router=A&identity=...&filter=...&do=edit */

import { useLocation, useNavigate } from "react-router-dom";

import type { Entity } from "../../model/types";
import { secondPart } from "../common/path";

export interface Place {
  readonly entity: Entity;
  /** The id of the router looked at; "" for all. */
  readonly router: string;
  /** The entity shown in full; "" for the table. */
  readonly identity: string;
  readonly filter: string;
  readonly does: "" | "create" | "edit";
}

const FIRST: Entity = "connection";

/** Return the place that a path and its query name. */
export function placeOf(pathname: string, search: string): Place {
  const query = new URLSearchParams(search);
  const does = query.get("do");
  return {
    entity: secondPart(pathname) || FIRST,
    router: query.get("router") ?? "",
    identity: query.get("identity") ?? "",
    filter: query.get("filter") ?? "",
    does: does === "create" || does === "edit" ? does : "",
  };
}

/** Return the address of a place, as a link of the console has it. */
export function addressOf(place: Partial<Place>): string {
  const { entity = FIRST, router, identity, filter, does } = place;
  const query = new URLSearchParams(
    Object.entries({ router, identity, filter, do: does }).flatMap(([key, value]) => (value ? [[key, value]] : [])),
  ).toString();
  return `/entities/${encodeURIComponent(entity)}${query === "" ? "" : `?${query}`}`;
}

/** The place now, and how to go to another. A change of the filter leaves no trace in the browser's history. */
export function usePlace(): readonly [Place, (change: Partial<Place>) => void] {
  const { pathname, search } = useLocation();
  const navigate = useNavigate();
  const place = placeOf(pathname, search);
  const go = (change: Partial<Place>): void => {
    navigate(addressOf({ ...place, ...change }), { replace: "filter" in change });
  };
  return [place, go];
}
