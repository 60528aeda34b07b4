import { useState } from "react";
import { Alert } from "@patternfly/react-core/dist/esm/components/Alert";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core/dist/esm/components/Modal";

import { shown } from "../../model/text";
import type { Entity } from "../../model/types";
import { manage, notify, refresh } from "../../store";

interface Given {
  readonly entity: Entity;
  /** What it is called, as text that fits a heading. */
  readonly name: string;
  readonly identity: string;
  /** The id of its router, and the address of the router's management node. */
  readonly router: string;
  readonly address: string;
  /** Close a connection; else delete the entity. */
  readonly isClose: boolean;
  /** Called at the end: whether the entity is gone. */
  readonly onEnd: (isGone: boolean) => void;
}

/** The question before an entity is deleted or a connection closed. */
export function Destroy({ entity, name, identity, router, address, isClose, onEnd }: Given) {
  const [problem, setProblem] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const what = `${entity} ${name}`;
  const act = async (): Promise<void> => {
    setIsBusy(true);
    setProblem("");
    try {
      await manage(
        address,
        isClose
          ? { operation: "UPDATE", type: entity, identity, body: { adminStatus: "deleted" } }
          : { operation: "DELETE", type: entity, identity },
      );
      notify("success", isClose ? `Closed ${what}` : `Deleted ${what}`);
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
          {what} on router {shown(router)}
          {isClose ? ": its links end, and messages under way on it are released." : ": this cannot be taken back."}
        </p>
        {problem !== "" && <Alert variant="danger" isInline title={shown(problem, 2_000)} />}
      </ModalBody>
      <ModalFooter>
        <Button variant="danger" isLoading={isBusy} isDisabled={isBusy} onClick={() => void act()}>
          {isClose ? "Close connection" : "Delete"}
        </Button>
        <Button variant="link" onClick={() => onEnd(false)}>
          Keep
        </Button>
      </ModalFooter>
    </Modal>
  );
}
