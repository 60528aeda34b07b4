import { expect, it } from "vitest";

import type { SchemaAttribute, SchemaType } from "../../model/types";
import { bodyOf, fieldIn, fieldsOf } from "./fields";

const plain: SchemaAttribute = { type: "string", required: false, unique: false, deprecated: false, graph: false, create: false, update: false, description: "" };
const type: SchemaType = {
  name: "listener",
  fullName: "org.apache.qpid.dispatch.listener",
  attributes: {
    identity: plain,
    role: { ...plain, type: ["normal", "edge"], default: "normal" },
    port: { ...plain, required: true },
    cost: { ...plain, type: "integer", default: 1 },
    http: { ...plain, type: "boolean" },
    groups: { ...plain, type: "map" },
    addr: { ...plain, deprecated: true },
    deliveries: { ...plain, type: "integer", graph: true },
    password: plain,
    name: plain,
  },
  operations: ["CREATE"],
  description: "",
  deprecated: false,
  singleton: false,
  references: [],
};

it("makes fields of the attributes that may be set: name first, then required ones", () => {
  const fields = fieldsOf(type, "create");
  expect(fields.map((field) => field.name)).toEqual(["name", "port", "role", "cost", "http", "groups", "password"]);
  expect(fields.map((field) => field.kind)).toEqual(["text", "text", "enum", "number", "boolean", "json", "secret"]);
  expect(fields.find((field) => field.name === "cost")?.byDefault).toBe("1");
});

it("converts filled-in texts to the types of the attributes", () => {
  const { body, errors } = bodyOf(fieldsOf(type, "create"), { port: "5672", cost: "7", http: "yes", groups: '{"a": [1]}' }, undefined);
  expect(errors).toEqual({});
  expect(body).toEqual({ port: "5672", cost: 7, http: true, groups: { a: [1] } });
});

it("returns only changed attributes, and null for emptied ones", () => {
  const present = { name: "l", port: "5672", cost: 3, http: true };
  const texts = { name: "l", port: "5672", cost: "", http: "no" };
  expect(bodyOf(fieldsOf(type, "create"), texts, present).body).toEqual({ cost: null, http: false });
});

it("reports missing and malformed values by field", () => {
  const { errors } = bodyOf(fieldsOf(type, "create"), { cost: "many", groups: "{" }, undefined);
  expect(Object.keys(errors)).toEqual(["port", "cost", "groups"]);
});

it("finds the field that a refusal names", () => {
  const fields = fieldsOf(type, "create");
  expect(fieldIn("Unknown attribute 'cost' for 'listener'", fields)).toBe("cost");
  expect(fieldIn("listener.port: no such service", fields)).toBe("port");
  expect(fieldIn("the address is in use", fields)).toBeUndefined();
});

it("makes fields only of attributes that the router says it accepts", () => {
  const reported = { ...type, attributes: { name: { ...plain, create: true }, enable: { ...plain, create: true, update: true }, uptime: plain } };
  expect(fieldsOf(reported, "create").map(({ name }) => name)).toEqual(["name", "enable"]);
  expect(fieldsOf(reported, "update").map(({ name }) => name)).toEqual(["enable"]);
});
