import { useEffect, useState } from "react";
import { Label } from "@patternfly/react-core/dist/esm/components/Label";

import type { AddressView } from "../../model/address";
import { concludeFromTables, parseExplanation, type Explanation, type Gravity } from "../../model/explanation";
import { shown } from "../../model/text";
import type { RouterTables } from "../../model/types";
import { ManagementError, manage } from "../../store";
import { Panel } from "../common/Panel";

const EVERY_MS = 2_000;
const LABELS: Readonly<Record<Gravity, string>> = { success: "Flowing", info: "Idle", warning: "Check", danger: "Held up" };
const MAX_SHOWN = 400;

/** The last answer of one router; without properties before the first. */
interface ExplanationState {
  readonly explanation?: Explanation | undefined;
  /** Why no answer came; the request is repeated. */
  readonly problem?: string | undefined;
  /** The router has no EXPLAIN, or this login may not call it; the request is not repeated. */
  readonly isRefused?: boolean;
}

/** Request the explanation of the address from one router every EVERY_MS, until the router refuses it. */
function useExplanation(router: string, name: string): ExplanationState {
  const [state, setState] = useState<ExplanationState>({});
  useEffect(() => {
    let isStopped = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const request = async (): Promise<void> => {
      let isRepeated = true;
      try {
        const explanation = parseExplanation(await manage(router, { operation: "EXPLAIN", properties: { address: name } }));
        if (!isStopped) setState({ explanation });
      } catch (error) {
        const isRefused = error instanceof ManagementError && error.status >= 400;
        isRepeated = !isRefused;
        if (!isStopped) setState(isRefused ? { isRefused } : { problem: error instanceof Error ? error.message : String(error) });
      }
      if (!isStopped && isRepeated) timer = setTimeout(() => void request(), EVERY_MS);
    };
    void request();
    return () => {
      isStopped = true;
      clearTimeout(timer);
    };
  }, [router, name]);
  return state;
}

interface Props {
  readonly name: string;
  readonly view: AddressView;
  readonly routers: readonly RouterTables[];
}

/** Shows each router's explanation why messages for the address flow or not. */
export function Explanations({ name, view, routers }: Props) {
  return (
    <Panel title="Why messages flow or not" isWide>
      <ul className="console-list" aria-label="Explanations">
        {routers.map((router) => (
          <RouterExplanation key={router.id} router={router} name={name} view={view} />
        ))}
      </ul>
    </Panel>
  );
}

function RouterExplanation({ router, name, view }: { router: RouterTables; name: string; view: AddressView }) {
  const { explanation, problem, isRefused } = useExplanation(router.address, name);
  const displayed = explanation ?? (isRefused === true ? concludeForRouter(view, router.id) : undefined);
  const id = <bdi className="console-router">{shown(router.id)}</bdi>;
  if (displayed === undefined)
    return (
      <li className="console-item">
        <Label isCompact>{problem === undefined ? "Waiting" : "No answer"}</Label>
        <span>
          {id}: <bdi>{problem ?? "waiting for the router's answer"}</bdi>
        </span>
      </li>
    );
  const rule = [displayed.rule, displayed.fallback === "" ? "" : `fallback ${displayed.fallback}`].filter((each) => each !== "").join("; ");
  return (
    <li className="console-item">
      <Label isCompact status={displayed.gravity}>
        {LABELS[displayed.gravity]}
      </Label>
      <span>
        {id}: <bdi>{shown(displayed.verdict, MAX_SHOWN)}</bdi>
      </span>
      {displayed.details.map((detail) => (
        <span key={detail} className="console-subtle">
          <bdi>{shown(detail, MAX_SHOWN)}</bdi>
        </span>
      ))}
      <span className="console-subtle">
        <bdi>{displayed.isReported ? shown(`Rule: ${rule}`, MAX_SHOWN) : "Concluded from its tables: the router does not explain this to your login."}</bdi>
      </span>
    </li>
  );
}

function concludeForRouter(view: AddressView, router: string): Explanation {
  return concludeFromTables({
    consumers: view.consumers.filter((link) => link.router === router),
    producers: view.producers.filter((link) => link.router === router),
    routers: view.routers,
  });
}
