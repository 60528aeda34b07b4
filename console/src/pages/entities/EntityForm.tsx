import { useRef, useState, type SubmitEvent } from "react";
import { Alert } from "@patternfly/react-core/dist/esm/components/Alert";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { ActionGroup, Form } from "@patternfly/react-core/dist/esm/components/Form";
import { Title } from "@patternfly/react-core/dist/esm/components/Title";

import { isMap } from "../../model/rows";
import { shown } from "../../model/text";
import type { RouterRef, SchemaType, Value } from "../../model/types";
import { ManagementError, manage, notify, refresh } from "../../store";
import { FieldInput } from "./FieldInput";
import { bodyOf, fieldIn, fieldsOf, textOfField } from "./fields";
import { identityOf, type EntityRow } from "./rows";

interface Props {
  readonly type: SchemaType;
  readonly router: RouterRef;
  /** The entity to change; absent to create one. */
  readonly present?: EntityRow;
  /** Called at the end, with the identity of the created or changed entity. */
  readonly onDone: (made?: string) => void;
}

/** Send the CREATE or UPDATE and return the identity of the entity; throw ManagementError if the router refuses. */
async function send(props: Props, body: Record<string, Value>): Promise<string> {
  const { type, router, present } = props;
  const name = body["name"];
  const made = await manage(router.address, {
    operation: present === undefined ? "CREATE" : "UPDATE",
    type: type.name,
    ...(present === undefined ? {} : { identity: present.identity }),
    ...(present === undefined && typeof name === "string" ? { name } : {}),
    body,
  });
  refresh(router.id, type.name);
  return isMap(made) ? identityOf(made) : "";
}

/** Shows the form that creates or changes an entity, built from the schema of its type. */
export function EntityForm(props: Props) {
  const { type, router, present, onDone } = props;
  const fields = fieldsOf(type, present === undefined ? "create" : "update");
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(fields.map((field) => [field.name, textOfField(present?.row[field.name])])),
  );
  const [errors, setErrors] = useState<Readonly<Record<string, string>>>({});
  const [problem, setProblem] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  // The row as it was when the form opened: a later update from the router must not count as a change by the user.
  const opened = useRef(present?.row);

  const fail = (found: Readonly<Record<string, string>>, text: string): void => {
    setErrors(found);
    setProblem(text);
    const first = fields.find((field) => found[field.name] !== undefined);
    if (first !== undefined) document.getElementById(`field-${first.name}`)?.focus();
  };
  const showRefusal = (error: unknown): void => {
    const text = error instanceof Error ? error.message : String(error);
    const field = error instanceof ManagementError ? fieldIn(text, fields) : undefined;
    fail(field === undefined ? {} : { [field]: text }, field === undefined ? text : "");
  };
  const submit = async (): Promise<void> => {
    const request = bodyOf(fields, texts, opened.current);
    if (Object.keys(request.errors).length > 0) {
      fail(request.errors, "");
      return;
    }
    setIsBusy(true);
    fail({}, "");
    try {
      const made = await send(props, request.body);
      notify("success", present === undefined ? `Created ${type.name} ${made}` : `Changed ${type.name} ${present.identity}`);
      onDone(made);
    } catch (error) {
      showRefusal(error);
      setIsBusy(false);
    }
  };
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    void submit();
  };
  const verb = present === undefined ? "Create" : "Change";
  return (
    <Form onSubmit={onSubmit} noValidate className="console-entity-form">
      <Title headingLevel="h2">
        {verb} {type.name} on router {shown(router.id)}
      </Title>
      {problem !== "" && <Alert variant="danger" isInline title={shown(problem, 2_000)} />}
      {fields.map((field) => (
        <FieldInput
          key={field.name}
          field={field}
          text={texts[field.name] ?? ""}
          error={errors[field.name] ?? ""}
          onChange={(text) => setTexts({ ...texts, [field.name]: text })}
        />
      ))}
      <ActionGroup>
        <Button type="submit" isLoading={isBusy} isDisabled={isBusy}>
          {verb}
        </Button>
        <Button variant="link" onClick={() => onDone(present?.identity)}>
          Cancel
        </Button>
      </ActionGroup>
    </Form>
  );
}
