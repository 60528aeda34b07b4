import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/esm/components/FormSelect";

import { shown } from "../../model/text";
import { useSchema, useSession } from "../../store";
import type { EntityLocation } from "./location";

/** Lets the user choose the entity type and the router. */
export function Choice({ location, onChange }: { location: EntityLocation; onChange: (change: Partial<EntityLocation>) => void }) {
  const schema = useSchema();
  const { routers } = useSession();
  const types = Object.values(schema.types)
    .filter((type) => (type.operations.length > 0 && !type.deprecated) || type.name === location.entity)
    .map((type) => type.name)
    .sort();
  return (
    <div className="console-choice">
      <label>
        Type{" "}
        <FormSelect
          id="entity"
          aria-label="Type"
          value={location.entity}
          onChange={(_event, entity) => onChange({ entity, identity: "", action: "", filter: "" })}
        >
          {(types.includes(location.entity) ? types : [location.entity, ...types]).map((name) => (
            <FormSelectOption key={name} value={name} label={shown(name)} />
          ))}
        </FormSelect>
      </label>
      <label>
        Router{" "}
        <FormSelect
          id="router"
          aria-label="Router"
          value={location.router}
          onChange={(_event, router) => onChange({ router, identity: "", action: "" })}
        >
          <FormSelectOption value="" label="All routers" />
          {routers.map((router) => (
            <FormSelectOption key={router.id} value={router.id} label={shown(router.id)} />
          ))}
        </FormSelect>
      </label>
    </div>
  );
}
