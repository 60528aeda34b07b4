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
import type { Place } from "./place";
import { attributesOf, titleOf, type EntityRow } from "./rows";

interface Given {
  readonly place: Place;
  readonly type: SchemaType | undefined;
  readonly found: EntityRow | undefined;
  readonly isLoading: boolean;
  readonly go: (change: Partial<Place>) => void;
}

/** One entity with all of its attributes, and what the login may do to it. */
export function Detail({ place, type, found, isLoading, go }: Given) {
  const { can, routers } = useSession();
  const [asks, setAsks] = useState(false);
  const back = (
    <Button variant="link" isInline onClick={() => go({ identity: "", does: "" })}>
      All of {place.entity}
    </Button>
  );
  if (found === undefined) {
    const where = place.router === "" ? "" : ` on router ${shown(place.router)}`;
    return (
      <>
        {back}
        <p className="console-about">
          {isLoading ? "Asking the router..." : `There is no ${place.entity} ${shown(place.identity, 200)}${where}.`}
        </p>
      </>
    );
  }
  const router = routers.find((one) => one.id === found.router);
  const isConnection = place.entity === "connection";
  const canClose = isConnection && can("UPDATE", place.entity) && found.row["role"] === "normal";
  const canDelete = !isConnection && can("DELETE", place.entity);
  return (
    <>
      {back}
      <div className="console-entity">
        <Title headingLevel="h2">{titleOf(found)}</Title>
        <div className="console-actions">
          {can("UPDATE", place.entity) && !isConnection && place.does !== "edit" && (
            <Button variant="secondary" onClick={() => go({ does: "edit" })}>
              Change
            </Button>
          )}
          {(canDelete || canClose) && (
            <Button variant="danger" onClick={() => setAsks(true)}>
              {canClose ? "Close connection" : "Delete"}
            </Button>
          )}
        </div>
      </div>
      {place.does === "edit" && type !== undefined && router !== undefined ? (
        <EntityForm type={type} router={router} present={found} onDone={() => go({ does: "" })} />
      ) : (
        <Attributes found={found} type={type} />
      )}
      {asks && router !== undefined && (
        <Destroy
          entity={place.entity}
          name={titleOf(found)}
          identity={found.identity}
          router={found.router}
          address={found.address}
          isClose={canClose}
          onEnd={(isGone) => {
            setAsks(false);
            if (isGone) go({ identity: "", does: "" });
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
