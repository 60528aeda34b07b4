import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Label } from "@patternfly/react-core/dist/esm/components/Label";

import { shown } from "../model/text";
import { logout, useSession } from "../store";

/** How the connection is, who is logged in, and the way out. */
export function Account() {
  const { state, user, rights, routers } = useSession();
  const own = routers[0]?.id;
  return (
    <div className="console-account">
      <span role="status">
        {state === "lost" ? (
          <Label status="warning">Connection lost, connecting again</Label>
        ) : (
          <Label status="success">Connected{own !== undefined && ` to ${shown(own, 40)}`}</Label>
        )}
      </span>
      {user !== "" && <span className="console-user">{shown(user, 60)}</span>}
      {rights.isTenant && <Label>tenant</Label>}
      {rights.level === "read" && <Label>reads only</Label>}
      <Button variant="secondary" size="sm" onClick={() => logout()}>
        Log out
      </Button>
    </div>
  );
}
