import { Tab, Tabs, TabTitleText } from "@patternfly/react-core/dist/esm/components/Tabs";
import { useLocation, useNavigate } from "react-router-dom";

import { Page } from "../../parts";
import type { Wanted } from "../../store";
import { useSupportedTables } from "../common/tables";
import { Denials } from "./Denials";
import { Explain } from "./Explain";
import { Vhosts } from "./Vhosts";

const EVERY_MS = 2_000;
const TABLES: Wanted = { policy: "all", vhost: "all", vhostStats: "all", denial: "all" };
const TABS = [
  ["vhosts", "Vhosts and users"],
  ["explain", "Explain"],
  ["denials", "Denials"],
] as const;

/** Shows the operator the policy: vhosts with their groups and users, explanations of decisions, and denials. */
export default function Policy() {
  const snapshot = useSupportedTables(TABLES, EVERY_MS);
  const { pathname } = useLocation();
  const navigate = useNavigate();
  const chosen = TABS.find(([key]) => pathname === `/policy/${key}`)?.[0] ?? "vhosts";
  return (
    <Page title="Policy">
      <Tabs activeKey={chosen} aria-label="Parts of the policy" onSelect={(_event, key) => navigate(`/policy/${key}`)}>
        {TABS.map(([key, title]) => (
          <Tab key={key} eventKey={key} title={<TabTitleText>{title}</TabTitleText>}>
            {chosen === key && (
              <div className="console-tab">
                {key === "vhosts" && <Vhosts snapshot={snapshot} />}
                {key === "explain" && <Explain snapshot={snapshot} />}
                {key === "denials" && <Denials snapshot={snapshot} />}
              </div>
            )}
          </Tab>
        ))}
      </Tabs>
    </Page>
  );
}
