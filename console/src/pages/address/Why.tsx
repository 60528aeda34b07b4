import { useEffect, useState } from "react";
import { Label } from "@patternfly/react-core/dist/esm/components/Label";

import type { AddressView } from "../../model/address";
import { concluded, explanationOf, type Explanation, type Gravity } from "../../model/explanation";
import { shown } from "../../model/text";
import type { RouterTables } from "../../model/types";
import { ManagementError, manage } from "../../store";
import { Panel } from "../common/Panel";

const EVERY_MS = 2_000;
const LABELS: Readonly<Record<Gravity, string>> = { success: "Flowing", info: "Idle", warning: "Look", danger: "Held up" };
const MAX_SHOWN = 400;

interface Told {
  readonly explanation?: Explanation | undefined;
  /** Why the router did not say; undefined where it did, or where it is not to be asked again. */
  readonly problem?: string | undefined;
  /** The router has no EXPLAIN, or this login may not ask for it. */
  readonly isRefused?: boolean;
}

/** Ask one router again and again why the address flows or does not; a refusal is final. */
function useExplained(router: string, name: string): Told {
  const [told, setTold] = useState<Told>({});
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      let again = true;
      try {
        const explanation = explanationOf(await manage(router, { operation: "EXPLAIN", properties: { address: name } }));
        if (!isOver) setTold({ explanation });
      } catch (error) {
        const isRefused = error instanceof ManagementError && error.status >= 400;
        again = !isRefused;
        if (!isOver) setTold(isRefused ? { isRefused } : { problem: error instanceof Error ? error.message : String(error) });
      }
      if (!isOver && again) timer = setTimeout(() => void ask(), EVERY_MS);
    };
    void ask();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [router, name]);
  return told;
}

interface Given {
  readonly name: string;
  readonly view: AddressView;
  readonly routers: readonly RouterTables[];
}

/** Why is this not flowing: what each router says, in words. */
export function Why({ name, view, routers }: Given) {
  return (
    <Panel title="Why does it flow, or not?" isWide>
      <ul className="console-list" aria-label="Explanations">
        {routers.map((router) => (
          <OfRouter key={router.id} router={router} name={name} view={view} />
        ))}
      </ul>
    </Panel>
  );
}

function OfRouter({ router, name, view }: { router: RouterTables; name: string; view: AddressView }) {
  const { explanation, problem, isRefused } = useExplained(router.address, name);
  const told = explanation ?? (isRefused === true ? concludedFor(view, router.id) : undefined);
  const id = <bdi className="console-router">{shown(router.id)}</bdi>;
  if (told === undefined)
    return (
      <li className="console-item">
        <Label isCompact>{problem === undefined ? "Asked" : "No answer"}</Label>
        <span>
          {id}: <bdi>{problem ?? "waiting for its answer"}</bdi>
        </span>
      </li>
    );
  const rule = [told.rule, told.fallback === "" ? "" : `fallback ${told.fallback}`].filter((each) => each !== "").join("; ");
  return (
    <li className="console-item">
      <Label isCompact status={told.gravity}>
        {LABELS[told.gravity]}
      </Label>
      <span>
        {id}: <bdi>{shown(told.verdict, MAX_SHOWN)}</bdi>
      </span>
      {told.details.map((detail) => (
        <span key={detail} className="console-subtle">
          <bdi>{shown(detail, MAX_SHOWN)}</bdi>
        </span>
      ))}
      <span className="console-subtle">
        <bdi>{told.isTold ? shown(`Rule: ${rule}`, MAX_SHOWN) : "Concluded from its tables: the router does not explain this to your login."}</bdi>
      </span>
    </li>
  );
}

function concludedFor(view: AddressView, router: string): Explanation {
  return concluded({
    consumers: view.consumers.filter((link) => link.router === router),
    producers: view.producers.filter((link) => link.router === router),
    routers: view.routers,
  });
}
