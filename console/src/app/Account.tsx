import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Label } from "@patternfly/react-core/dist/esm/components/Label";

import { shown } from "../model/text";
import { logout, useSession } from "../store";

/** Shows the state of the connection and the user's name, and lets the user log out. */
export function Account() {
  const { state, user, rights, routers } = useSession();
  const connectedId = routers[0]?.id;
  return (
    <div className="console-account">
      <span role="status">
        {state === "lost" ? (
          <Label status="warning">Connection lost, connecting again</Label>
        ) : (
          <Label status="success">Connected{connectedId !== undefined && ` to ${shown(connectedId, 40)}`}</Label>
        )}
      </span>
      {user !== "" && <span className="console-user">{shown(user, 60)}</span>}
      {rights.isTenant && <Label>tenant</Label>}
      {rights.level === "read" && <Label>read only</Label>}
      <Button variant="secondary" size="sm" onClick={() => logout()}>
        Log out
      </Button>
    </div>
  );
}
