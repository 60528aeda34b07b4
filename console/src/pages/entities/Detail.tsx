import { useState } from "react";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import {
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
} from "@patternfly/react-core/dist/esm/components/DescriptionList";
import { Title } from "@patternfly/react-core/dist/esm/components/Title";

import { shown } from "../../model/text";
import type { SchemaType } from "../../model/types";
import { WholeValue } from "../../parts";
import { useSession } from "../../store";
import { Destroy } from "../common/Destroy";
import { EntityForm } from "./EntityForm";
import type { EntityLocation } from "./location";
import { attributesOf, titleOf, type EntityRow } from "./rows";

interface Props {
  readonly location: EntityLocation;
  readonly type: SchemaType | undefined;
  readonly found: EntityRow | undefined;
  readonly isLoading: boolean;
  readonly go: (change: Partial<EntityLocation>) => void;
}

/** Shows one entity with all of its attributes, and buttons for the changes that the login may make. */
export function Detail({ location, type, found, isLoading, go }: Props) {
  const { can, routers } = useSession();
  const [isConfirming, setIsConfirming] = useState(false);
  const back = (
    <Button variant="link" isInline onClick={() => go({ identity: "", action: "" })}>
      All of {location.entity}
    </Button>
  );
  if (found === undefined) {
    const where = location.router === "" ? "" : ` on router ${shown(location.router)}`;
    return (
      <>
        {back}
        <p className="console-about">
          {isLoading ? "Waiting for the router..." : `There is no ${location.entity} ${shown(location.identity, 200)}${where}.`}
        </p>
      </>
    );
  }
  const router = routers.find((one) => one.id === found.router);
  const isConnection = location.entity === "connection";
  const canClose = isConnection && can("UPDATE", location.entity) && found.row["role"] === "normal";
  const canDelete = !isConnection && can("DELETE", location.entity);
  return (
    <>
      {back}
      <div className="console-entity">
        <Title headingLevel="h2">{titleOf(found)}</Title>
        <div className="console-actions">
          {can("UPDATE", location.entity) && !isConnection && location.action !== "edit" && (
            <Button variant="secondary" onClick={() => go({ action: "edit" })}>
              Change
            </Button>
          )}
          {(canDelete || canClose) && (
            <Button variant="danger" onClick={() => setIsConfirming(true)}>
              {canClose ? "Close connection" : "Delete"}
            </Button>
          )}
        </div>
      </div>
      {location.action === "edit" && type !== undefined && router !== undefined ? (
        <EntityForm type={type} router={router} present={found} onDone={() => go({ action: "" })} />
      ) : (
        <Attributes found={found} type={type} />
      )}
      {isConfirming && router !== undefined && (
        <Destroy
          entity={location.entity}
          name={titleOf(found)}
          identity={found.identity}
          router={found.router}
          address={found.address}
          isClose={canClose}
          onEnd={(isGone) => {
            setIsConfirming(false);
            if (isGone) go({ identity: "", action: "" });
          }}
        />
      )}
    </>
  );
}

function Attributes({ found, type }: { found: EntityRow; type: SchemaType | undefined }) {
  const names = attributesOf(type, [found]);
  return (
    <DescriptionList isHorizontal isCompact className="console-attributes" horizontalTermWidthModifier={{ default: "16ch", md: "26ch" }}>
      <DescriptionListGroup>
        <DescriptionListTerm>router</DescriptionListTerm>
        <DescriptionListDescription>
          <WholeValue value={found.router} />
        </DescriptionListDescription>
      </DescriptionListGroup>
      {names.map((name) => (
        <DescriptionListGroup key={name}>
          <DescriptionListTerm>
            <span title={type?.attributes[name]?.description}>{name}</span>
          </DescriptionListTerm>
          <DescriptionListDescription>
            <WholeValue value={found.row[name]} />
          </DescriptionListDescription>
        </DescriptionListGroup>
      ))}
    </DescriptionList>
  );
}
