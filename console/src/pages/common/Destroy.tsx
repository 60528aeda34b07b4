import { useState } from "react";
import { Alert } from "@patternfly/react-core/dist/esm/components/Alert";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core/dist/esm/components/Modal";

import { shown } from "../../model/text";
import type { Entity } from "../../model/types";
import { manage, notify, refresh } from "../../store";

interface Props {
  readonly entity: Entity;
  /** The name of the entity, for a heading. */
  readonly name: string;
  readonly identity: string;
  /** The id of the router. */
  readonly router: string;
  /** The address of the router, as manage() takes it. */
  readonly address: string;
  /** True to close a connection, false to delete the entity. */
  readonly isClose: boolean;
  /** Called when the dialog ends; `isGone` says whether the entity was deleted or closed. */
  readonly onEnd: (isGone: boolean) => void;
}

/** Asks the operator to confirm, then deletes an entity or closes a connection. */
export function Destroy({ entity, name, identity, router, address, isClose, onEnd }: Props) {
  const [problem, setProblem] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const subject = `${entity} ${name}`;
  const send = async (): Promise<void> => {
    setIsBusy(true);
    setProblem("");
    try {
      await manage(
        address,
        isClose
          ? { operation: "UPDATE", type: entity, identity, body: { adminStatus: "deleted" } }
          : { operation: "DELETE", type: entity, identity },
      );
      notify("success", isClose ? `Closed ${subject}` : `Deleted ${subject}`);
      refresh(router, entity);
      onEnd(true);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      setIsBusy(false);
    }
  };
  const title = isClose ? "Close this connection?" : `Delete this ${entity}?`;
  return (
    <Modal isOpen variant="small" aria-labelledby="destroy-title" onClose={() => onEnd(false)}>
      <ModalHeader title={title} labelId="destroy-title" titleIconVariant="warning" />
      <ModalBody>
        <p>
          {subject} on router {shown(router)}
          {isClose ? ": its links end, and messages under way on it are released." : ": this cannot be undone."}
        </p>
        {problem !== "" && <Alert variant="danger" isInline title={shown(problem, 2_000)} />}
      </ModalBody>
      <ModalFooter>
        <Button variant="danger" isLoading={isBusy} isDisabled={isBusy} onClick={() => void send()}>
          {isClose ? "Close connection" : "Delete"}
        </Button>
        <Button variant="link" onClick={() => onEnd(false)}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  );
}
