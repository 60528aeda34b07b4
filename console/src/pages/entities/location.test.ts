import { expect, it } from "vitest";

import { locationPath, parseLocation } from "./location";

it("parses the URL that it makes, with any characters in names", () => {
  const location = {
    entity: "router.link",
    router: "site/one & two?",
    identity: "connection/[::1]:5672#x%",
    filter: 'a:"b" +c',
    action: "edit",
  } as const;
  const [path, query] = locationPath(location).split("?", 2);
  expect(parseLocation(path ?? "", `?${query}`)).toEqual(location);
});

it("uses the first type if the URL names none", () => {
  expect(parseLocation("/entities", "")).toEqual({ entity: "connection", router: "", identity: "", filter: "", action: "" });
});
