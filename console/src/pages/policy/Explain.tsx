import { useState, type SyntheticEvent } from "react";
import { Alert } from "@patternfly/react-core/dist/esm/components/Alert";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";

import { parseDecision, vhostsOf, type Decision } from "../../model/policy";
import { shown } from "../../model/text";
import type { Snapshot } from "../../model/types";
import { ManagementError, manage, useSession } from "../../store";
import { ChoiceField, TextField } from "../common/Field";
import { Panel } from "../common/Panel";

const MAX_SHOWN = 400;
const DIRECTIONS = [["", "Only the connection"], ["source", "Receive from"], ["target", "Send to"]] as const;
const NOT_EXPLAINED = "The router cannot explain its policy: its version has no EXPLAIN-POLICY.";

/** Lets the operator ask a router for its policy's decision on a user, a host and an address, and shows the rule that decides. */
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
  const requestDecision = async (): Promise<void> => {
    const managementAddress = routers.find((each) => each.id === router)?.address ?? "";
    const properties = { vhost, user, host, ...(direction === "" ? {} : { [direction]: address }) };
    try {
      const parsed = parseDecision(await manage(managementAddress, { operation: "EXPLAIN-POLICY", properties }));
      setDecision(parsed);
      setProblem(parsed === undefined ? NOT_EXPLAINED : "");
    } catch (error) {
      setDecision(undefined);
      const status = error instanceof ManagementError ? error.status : 0;
      setProblem(status === 403 ? "Not allowed for your login." : status === 501 ? NOT_EXPLAINED : String(error));
    }
  };
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    void requestDecision();
  };
  return (
    <Panel title="Explain a policy decision" isWide>
      <form className="console-form" onSubmit={submit}>
        {routers.length > 1 && (
          <ChoiceField label="Router" value={router} onChange={setRouter} options={routers.map((each) => [each.id, each.id] as const)} />
        )}
        <TextField label="Vhost" value={vhost} onChange={setVhost} placeholder="none" suggestions={names} />
        <TextField label="User" value={user} onChange={setUser} placeholder="without a name" />
        <TextField label="Host" value={host} onChange={setHost} />
        <ChoiceField label="Operation" value={direction} onChange={setDirection} options={DIRECTIONS} />
        {direction !== "" && <TextField label="Address" value={address} onChange={setAddress} />}
        <Button type="submit">Explain</Button>
      </form>
      <div aria-live="polite" className="console-tab">
        {problem !== "" && <Alert variant="info" isInline component="p" title={problem} />}
        {decision !== undefined && <DecisionView decision={decision} />}
      </div>
    </Panel>
  );
}

function DecisionView({ decision }: { decision: Decision }) {
  return (
    <>
      <Alert
        variant={decision.isAllowed ? "success" : "danger"}
        isInline
        component="p"
        title={`${decision.isAllowed ? "Allowed" : "Denied"} by ${shown(decision.rule, MAX_SHOWN)}`}
      />
      <ol className="console-steps" aria-label="Steps">
        {decision.steps.map(([subject, finding, reason]) => (
          <li key={`${subject} ${finding}`}>
            <strong>{shown(subject, MAX_SHOWN)}</strong> <bdi>{shown(finding, MAX_SHOWN)}</bdi>
            {reason !== "" && (
              <span className="console-subtle">
                {" "}
                <bdi>{shown(reason, MAX_SHOWN)}</bdi>
              </span>
            )}
          </li>
        ))}
      </ol>
    </>
  );
}
