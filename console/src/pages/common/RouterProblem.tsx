import { Alert } from "@patternfly/react-core/dist/esm/components/Alert";

import { shown } from "../../model/text";

/** Shows the operator why a router does not answer or refuses. */
export function RouterProblem({ id, problem }: { id: string; problem: string }) {
  return <Alert variant="warning" isInline isPlain component="p" title={`Router ${shown(id)}: ${shown(problem, 500)}`} />;
}
