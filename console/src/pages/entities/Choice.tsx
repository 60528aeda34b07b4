import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/esm/components/FormSelect";

import { shown } from "../../model/text";
import { useSchema, useSession } from "../../store";
import type { Place } from "./place";

/** The choice of the type and of the router. */
export function Choice({ place, onChange }: { place: Place; onChange: (change: Partial<Place>) => void }) {
  const schema = useSchema();
  const { routers } = useSession();
  const types = Object.values(schema.types)
    .filter((type) => (type.operations.length > 0 && !type.deprecated) || type.name === place.entity)
    .map((type) => type.name)
    .sort();
  return (
    <div className="console-choice">
      <label>
        Type{" "}
        <FormSelect
          id="entity"
          aria-label="Type"
          value={place.entity}
          onChange={(_event, entity) => onChange({ entity, identity: "", does: "", filter: "" })}
        >
          {(types.includes(place.entity) ? types : [place.entity, ...types]).map((name) => (
            <FormSelectOption key={name} value={name} label={shown(name)} />
          ))}
        </FormSelect>
      </label>
      <label>
        Router{" "}
        <FormSelect
          id="router"
          aria-label="Router"
          value={place.router}
          onChange={(_event, router) => onChange({ router, identity: "", does: "" })}
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
