import { useState, type SyntheticEvent } from "react";
import { Alert } from "@patternfly/react-core/dist/esm/components/Alert";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";

import { decisionOf, vhostsOf, type Decision } from "../../model/policy";
import { shown } from "../../model/text";
import type { Snapshot } from "../../model/types";
import { ManagementError, manage, useSession } from "../../store";
import { ChoiceField, TextField } from "../common/Field";
import { Panel } from "../common/Panel";

const MAX_SHOWN = 400;
const DIRECTIONS = [["", "Only the connection"], ["source", "Receive from"], ["target", "Send to"]] as const;
const NOT_TOLD = "The router does not explain its policy: it is of another version.";

/** Ask a router what its policy decides on a user, a host and an address, and by which rule. */
export function Explain({ snapshot }: { snapshot: Snapshot }) {
  const { routers } = useSession();
  const [router, setRouter] = useState(routers[0]?.id ?? "");
  const [vhost, setVhost] = useState("");
  const [user, setUser] = useState("");
  const [host, setHost] = useState("127.0.0.1");
  const [direction, setDirection] = useState("");
  const [address, setAddress] = useState("");
  const [decision, setDecision] = useState<Decision>();
  const [problem, setProblem] = useState("");
  const names = [...new Set(vhostsOf(snapshot).map((each) => each.hostname))].filter((name) => name !== "");
  const ask = async (): Promise<void> => {
    const place = routers.find((each) => each.id === router)?.address ?? "";
    const properties = { vhost, user, host, ...(direction === "" ? {} : { [direction]: address }) };
    try {
      const told = decisionOf(await manage(place, { operation: "EXPLAIN-POLICY", properties }));
      setDecision(told);
      setProblem(told === undefined ? NOT_TOLD : "");
    } catch (error) {
      setDecision(undefined);
      const status = error instanceof ManagementError ? error.status : 0;
      setProblem(status === 403 ? "Not allowed for your login." : status === 501 ? NOT_TOLD : String(error));
    }
  };
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    void ask();
  };
  return (
    <Panel title="What does the policy decide, and why?" isWide>
      <form className="console-form" onSubmit={submit}>
        {routers.length > 1 && (
          <ChoiceField label="Router" value={router} onChange={setRouter} options={routers.map((each) => [each.id, each.id] as const)} />
        )}
        <TextField label="Vhost" value={vhost} onChange={setVhost} placeholder="none" suggestions={names} />
        <TextField label="User" value={user} onChange={setUser} placeholder="without a name" />
        <TextField label="Host" value={host} onChange={setHost} />
        <ChoiceField label="To do" value={direction} onChange={setDirection} options={DIRECTIONS} />
        {direction !== "" && <TextField label="Address" value={address} onChange={setAddress} />}
        <Button type="submit">Explain</Button>
      </form>
      <div aria-live="polite" className="console-tab">
        {problem !== "" && <Alert variant="info" isInline component="p" title={problem} />}
        {decision !== undefined && <Told decision={decision} />}
      </div>
    </Panel>
  );
}

function Told({ decision }: { decision: Decision }) {
  return (
    <>
      <Alert
        variant={decision.isAllowed ? "success" : "danger"}
        isInline
        component="p"
        title={`${decision.isAllowed ? "Allowed" : "Denied"} by ${shown(decision.rule, MAX_SHOWN)}`}
      />
      <ol className="console-steps" aria-label="Steps">
        {decision.steps.map(([what, found, why]) => (
          <li key={`${what} ${found}`}>
            <strong>{shown(what, MAX_SHOWN)}</strong> <bdi>{shown(found, MAX_SHOWN)}</bdi>
            {why !== "" && (
              <span className="console-subtle">
                {" "}
                <bdi>{shown(why, MAX_SHOWN)}</bdi>
              </span>
            )}
          </li>
        ))}
      </ol>
    </>
  );
}
