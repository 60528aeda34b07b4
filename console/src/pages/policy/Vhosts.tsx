import { useMemo, useState } from "react";
import { Alert } from "@patternfly/react-core/dist/esm/components/Alert";

import { connectedUsers, vhostsOf, type ConnectedUser, type Vhost } from "../../model/policy";
import { shown, visible } from "../../model/text";
import type { Snapshot } from "../../model/types";
import { DataTable, type Column } from "../../parts";
import { useTableAbsence } from "../common/tables";
import { Panel } from "../common/Panel";

const keyOf = (row: Vhost): string => `${row.router} ${row.hostname}`;

const VHOSTS: readonly Column<Vhost>[] = [
  { key: "hostname", title: "Vhost", value: (row) => row.hostname || "(no name)" },
  { key: "router", title: "Router", value: (row) => row.router },
  { key: "aliases", title: "Aliases", value: (row) => row.aliases, isHidden: true },
  { key: "groups", title: "Groups", value: (row) => row.groups.map((group) => group.name).join(", ") },
  { key: "current", title: "Connected", value: (row) => row.current },
  { key: "approved", title: "Admitted", value: (row) => row.approved },
  { key: "denied", title: "Denied", value: (row) => row.denied },
  { key: "links", title: "Links denied", value: (row) => row.linksDenied },
];

const USERS: readonly Column<ConnectedUser>[] = [
  { key: "user", title: "User", value: (row) => row.user || "(no name)" },
  { key: "vhost", title: "Vhost", value: (row) => row.vhost },
  { key: "group", title: "Group", value: (row) => row.group, help: "The group of the vhost that lists the user" },
  { key: "router", title: "Router", value: (row) => row.router },
  { key: "count", title: "Connections", value: (row) => row.connections.length },
  { key: "from", title: "From", value: (row) => row.connections.join(", ") },
];

/** Shows the vhosts, the groups of the chosen one, and the users that are connected under each. */
export function Vhosts({ snapshot }: { snapshot: Snapshot }) {
  const vhosts = useMemo(() => vhostsOf(snapshot), [snapshot]);
  const users = useMemo(() => connectedUsers(snapshot), [snapshot]);
  const [chosen, setChosen] = useState("");
  const open = vhosts.find((vhost) => keyOf(vhost) === chosen) ?? (vhosts.length === 1 ? vhosts[0] : undefined);
  const absence = useTableAbsence(snapshot, "vhost");
  const usersAbsence = useTableAbsence(snapshot, "vhostStats");
  const unprotected = snapshot.routers.filter((router) => router.tables["policy"]?.[0]?.["enableVhostPolicy"] === false);
  return (
    <div className="console-panels">
      {unprotected.length > 0 && (
        <Alert
          className="console-wide"
          variant="warning"
          isInline
          component="p"
          title={`No policy applies to the clients of ${shown(unprotected.map((router) => router.id).join(", "), 200)}`}
        >
          enableVhostPolicy is not set: every client that connects may send, receive and manage.
        </Alert>
      )}
      <Panel title="Vhosts" absence={absence} isWide>
        <DataTable
          label="Vhosts"
          columns={VHOSTS}
          rows={vhosts}
          rowKey={keyOf}
          onOpen={(row) => setChosen(keyOf(row))}
          exportName="vhosts"
          empty="No vhost is configured."
        />
      </Panel>
      {open !== undefined && <Groups vhost={open} />}
      <Panel title="Connected users" absence={usersAbsence} isWide>
        <DataTable
          label="Connected users"
          columns={USERS}
          rows={users}
          rowKey={(row) => `${row.router} ${row.vhost} ${row.user}`}
          exportName="connected-users"
          empty="No client is connected under a vhost."
        />
      </Panel>
    </div>
  );
}

function Groups({ vhost }: { vhost: Vhost }) {
  return (
    <Panel title={<bdi>{`Groups of ${shown(vhost.hostname || "(no name)")} on ${shown(vhost.router)}`}</bdi>} isWide>
      {vhost.groups.length === 0 && <p className="console-subtle">The vhost has no group: the router denies all clients.</p>}
      <div className="console-panels">
        {vhost.groups.map((group) => (
          <section key={group.name} aria-label={`Group ${visible(group.name)}`}>
            <h3 className="console-router">
              <bdi>{shown(group.name)}</bdi>
            </h3>
            <dl className="console-pairs">
              {[["users", group.users || "none"] as const, ...group.settings].map(([name, value]) => (
                <div key={name}>
                  <dt>
                    <bdi>{shown(name)}</bdi>
                  </dt>
                  <dd>
                    <bdi>{shown(value, 400)}</bdi>
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Panel>
  );
}
