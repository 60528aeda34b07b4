import { FormGroup, FormHelperText } from "@patternfly/react-core/dist/esm/components/Form";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/esm/components/FormSelect";
import { HelperText, HelperTextItem } from "@patternfly/react-core/dist/esm/components/HelperText";
import { TextArea } from "@patternfly/react-core/dist/esm/components/TextArea";
import { TextInput } from "@patternfly/react-core/dist/esm/components/TextInput";

import { shown } from "../../model/text";
import type { Field } from "./fields";

interface Props {
  readonly field: Field;
  readonly text: string;
  readonly error: string;
  readonly onChange: (text: string) => void;
}

/** Shows one attribute of a form: its input, its description and its error. */
export function FieldInput({ field, text, error, onChange }: Props) {
  const id = `field-${field.name}`;
  return (
    <FormGroup label={field.name} fieldId={id} isRequired={field.isRequired}>
      <Input id={id} field={field} text={text} error={error} onChange={onChange} />
      <FormHelperText id={`${id}-help`}>
        <HelperText isLiveRegion>
          {error !== "" && <HelperTextItem variant="error">{shown(error, 2_000)}</HelperTextItem>}
          {field.description !== "" && <HelperTextItem>{field.description}</HelperTextItem>}
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
}

function Input({ id, field, text, error, onChange }: Props & { id: string }) {
  const shared = {
    id,
    value: text,
    validated: error === "" ? "default" : "error",
    "aria-describedby": `${id}-help`,
    isRequired: field.isRequired,
  } as const;
  const change = (_event: unknown, value: string): void => onChange(value);
  if (field.kind === "enum" || field.kind === "boolean") {
    const choices = field.kind === "boolean" ? ["yes", "no"] : field.choices;
    return (
      <FormSelect {...shared} onChange={change}>
        <FormSelectOption value="" label={field.byDefault === "" ? "(none)" : `(default: ${field.byDefault})`} />
        {choices.map((choice) => (
          <FormSelectOption key={choice} value={choice} label={choice} />
        ))}
      </FormSelect>
    );
  }
  if (field.kind === "json") {
    return <TextArea {...shared} onChange={change} rows={4} placeholder="JSON" />;
  }
  return (
    <TextInput
      {...shared}
      onChange={change}
      type={field.kind === "secret" ? "password" : "text"}
      autoComplete={field.kind === "secret" ? "new-password" : "off"}
      inputMode={field.kind === "number" ? "numeric" : "text"}
      placeholder={field.byDefault}
    />
  );
}
