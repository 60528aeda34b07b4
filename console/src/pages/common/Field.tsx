import { useId } from "react";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/esm/components/FormSelect";
import { TextInput } from "@patternfly/react-core/dist/esm/components/TextInput";

import { shown } from "../../model/text";

interface Text {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly placeholder?: string;
  /** Values that the field suggests while the user types. */
  readonly suggestions?: readonly string[];
}

/** Shows a labelled field for one line of text. */
export function TextField({ label, value, onChange, placeholder, suggestions = [] }: Text) {
  const id = useId();
  return (
    <div className="console-field">
      <label htmlFor={id}>{label}</label>
      <TextInput
        id={id}
        value={value}
        placeholder={placeholder}
        onChange={(_event, text) => onChange(text)}
        list={suggestions.length > 0 ? `${id}-list` : undefined}
        autoComplete="off"
        spellCheck={false}
      />
      {suggestions.length > 0 && (
        <datalist id={`${id}-list`}>
          {suggestions.slice(0, 200).map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
    </div>
  );
}

interface Choice {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly options: readonly (readonly [value: string, label: string])[];
}

/** Shows a labelled list from which the user chooses one value. */
export function ChoiceField({ label, value, onChange, options }: Choice) {
  const id = useId();
  return (
    <div className="console-field">
      <label htmlFor={id}>{label}</label>
      <FormSelect id={id} value={value} onChange={(_event, chosen) => onChange(chosen)}>
        {options.map(([each, text]) => (
          <FormSelectOption key={each} value={each} label={shown(text)} />
        ))}
      </FormSelect>
    </div>
  );
}
