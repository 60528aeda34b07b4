import { expect, it } from "vitest";

import { addressOf, placeOf } from "./place";

it("finds back what an address was made of, whatever the names hold", () => {
  const place = {
    entity: "router.link",
    router: "site/one & two?",
    identity: "connection/[::1]:5672#x%",
    filter: 'a:"b" +c',
    does: "edit",
  } as const;
  const [path, query] = addressOf(place).split("?", 2);
  expect(placeOf(path ?? "", `?${query}`)).toEqual(place);
});

it("takes the first type where the address names none", () => {
  expect(placeOf("/entities", "")).toEqual({ entity: "connection", router: "", identity: "", filter: "", does: "" });
});
