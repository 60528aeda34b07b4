import { useMemo } from "react";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/esm/components/FormSelect";
import { Label } from "@patternfly/react-core/dist/esm/components/Label";
import { Title } from "@patternfly/react-core/dist/esm/components/Title";
import { Link, useLocation, useNavigate } from "react-router-dom";

import type { Schema as SchemaTypes, SchemaAttribute, SchemaType } from "../../model/types";
import { DataTable, Page, type Column } from "../../parts";
import { useSchema } from "../../store";
import { secondPart } from "../common/path";

interface AttributeRow {
  readonly type: SchemaType;
  readonly name: string;
  readonly attribute: SchemaAttribute;
}

const COLUMNS: readonly Column<AttributeRow>[] = [
  { key: "entity", title: "entity", value: ({ type }) => type.name },
  { key: "attribute", title: "attribute", value: ({ name }) => name },
  { key: "type", title: "type", value: ({ attribute: { type } }) => (typeof type === "string" ? type : type.join(" | ")) },
  { key: "default", title: "default", value: ({ attribute }) => attribute.default },
  { key: "required", title: "required", value: ({ attribute }) => attribute.required || null },
  { key: "deprecated", title: "deprecated", value: ({ attribute }) => attribute.deprecated || null },
  { key: "unique", title: "unique", value: ({ attribute }) => attribute.unique || null, isHidden: true },
  {
    key: "description",
    title: "description",
    value: ({ attribute }) => attribute.description,
    cell: ({ attribute }) => <span title={attribute.description}>{attribute.description}</span>,
  },
];

function attributeRows(schema: SchemaTypes, only: string): AttributeRow[] {
  return Object.values(schema.types)
    .filter((type) => only === "" || type.name === only)
    .flatMap((type) => Object.entries(type.attributes).map(([name, attribute]) => ({ type, name, attribute })));
}

/** Shows the entity types of the connected router with their attributes, which the user can filter by words. */
export default function Schema() {
  const schema = useSchema();
  const { pathname, search } = useLocation();
  const navigate = useNavigate();
  const only = secondPart(pathname);
  const filter = new URLSearchParams(search).get("filter") ?? "";
  const rows = useMemo(() => attributeRows(schema, only), [schema, only]);
  const columns = useMemo(() => COLUMNS.filter((column) => only === "" || column.key !== "entity"), [only]);
  const go = (type: string, text: string): void => {
    const query = text === "" ? "" : `?${new URLSearchParams({ filter: text }).toString()}`;
    navigate(`/schema${type === "" ? "" : `/${encodeURIComponent(type)}`}${query}`, { replace: type === only });
  };
  const type = schema.types[only];
  return (
    <Page title="Schema">
      <div className="console-choice">
        <label>
          Type{" "}
          <FormSelect aria-label="Type" value={only} onChange={(_event, name) => go(name, "")}>
            <FormSelectOption value="" label="All types" />
            {Object.keys(schema.types)
              .sort()
              .map((name) => (
                <FormSelectOption key={name} value={name} label={name} />
              ))}
          </FormSelect>
        </label>
      </div>
      {type !== undefined && <About type={type} />}
      <DataTable
        key={only}
        label={only === "" ? "Attributes of all types" : `Attributes of ${only}`}
        columns={columns}
        rows={rows}
        rowKey={(row) => `${row.type.name} ${row.name}`}
        onOpen={only === "" ? (row) => go(row.type.name, "") : undefined}
        exportName={only === "" ? "schema" : `schema-${only}`}
        filter={filter}
        onFilter={(text) => go(only, text)}
      />
    </Page>
  );
}

function About({ type }: { type: SchemaType }) {
  return (
    <section className="console-about">
      <Title headingLevel="h2">{type.name}</Title>
      <p>{type.description}</p>
      <p className="console-actions">
        {type.operations.map((operation) => (
          <Label key={operation} isCompact>
            {operation}
          </Label>
        ))}
        {type.singleton && <Label isCompact>singleton</Label>}
        {type.deprecated && (
          <Label isCompact status="warning">
            deprecated
          </Label>
        )}
        <Link to={`/entities/${encodeURIComponent(type.name)}`}>Entities of this type</Link>
      </p>
    </section>
  );
}
