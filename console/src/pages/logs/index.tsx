import { useMemo, useState } from "react";
import { Alert } from "@patternfly/react-core/dist/esm/components/Alert";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/esm/components/FormSelect";
import { Title } from "@patternfly/react-core/dist/esm/components/Title";
import { Link, useSearchParams } from "react-router-dom";

import { shown } from "../../model/text";
import { DataTable, Page, WholeValue, momentText, type Column } from "../../parts";
import { useSession } from "../../store";
import { RouterProblem } from "../common/RouterProblem";
import { Counts } from "./Counts";
import { LEVELS, isAtLeast, useEntries, type Entry } from "./entries";

const COLUMNS: readonly Column<Entry>[] = [
  { key: "time", title: "time", value: (entry) => entry.at, cell: (entry) => momentText(entry.at) },
  { key: "router", title: "router", value: (entry) => entry.router },
  { key: "module", title: "module", value: (entry) => entry.module },
  { key: "level", title: "level", value: (entry) => entry.level },
  { key: "text", title: "text", value: (entry) => entry.text },
  { key: "file", title: "file", value: (entry) => entry.file, isHidden: true },
];

/** Shows the operator the newest log entries of the routers, and the number of entries of each module. */
export default function Logs() {
  const [query, setQuery] = useSearchParams();
  const { routers, can } = useSession();
  const [opened, setOpened] = useState<Entry>();
  const parameter = (key: string): string => query.get(key) ?? "";
  const set = (changes: Readonly<Record<string, string>>): void => {
    setQuery(
      (now) => {
        const next = new URLSearchParams(now);
        for (const [key, value] of Object.entries(changes)) {
          if (value === "") next.delete(key);
          else next.set(key, value);
        }
        return next;
      },
      { replace: true },
    );
  };
  const [router, module, level] = [parameter("router"), parameter("module"), parameter("level")];
  const selectedRouters = routers.filter((one) => router === "" || one.id === router);
  const mayReadLog = can("GET-LOG", "management");
  const { entries, problems, isLoading } = useEntries(mayReadLog ? selectedRouters : [], module);
  const rows = useMemo(() => entries.filter((entry) => isAtLeast(entry.level, level)), [entries, level]);
  return (
    <Page title="Logs" actions={<Link to="/entities/log">Change what is logged</Link>}>
      <div className="console-choice">
        <Selection label="Router" all="All routers" value={router} names={routers.map((one) => one.id)} onChange={(id) => set({ router: id })} />
        <Selection label="Minimum level" all="Every level" value={level} names={LEVELS} onChange={(name) => set({ level: name })} />
        {module !== "" && (
          <Button variant="secondary" onClick={() => set({ module: "" })}>
            Module {shown(module)}: show all modules
          </Button>
        )}
      </div>
      {!mayReadLog && <Alert variant="info" isInline title="This login may not read log entries, only their counts." />}
      {Object.entries(problems).map(([id, problem]) => (
        <RouterProblem key={id} id={id} problem={problem} />
      ))}
      {opened !== undefined && (
        <section className="console-entry" aria-label="Log entry">
          <Button variant="link" isInline onClick={() => setOpened(undefined)}>
            Close this entry
          </Button>
          <p>
            {momentText(opened.at)} {shown(opened.router)} {shown(opened.module)} ({shown(opened.level)}) {shown(opened.file)}
          </p>
          <WholeValue value={opened.text} />
        </section>
      )}
      {mayReadLog && (
        <DataTable
          label="Log entries"
          columns={COLUMNS}
          rows={rows}
          rowKey={(entry) => `${entry.router}\n${entry.at}\n${entry.place}`}
          onOpen={setOpened}
          exportName="log"
          filter={parameter("filter")}
          onFilter={(text) => set({ filter: text })}
          empty={isLoading ? "Waiting for the routers..." : "No recent entry matches."}
        />
      )}
      <Title headingLevel="h2" className="console-subheading">
        Entries by module since the start
      </Title>
      <Counts router={router} onOpen={(id, name) => set({ router: id, module: name })} />
    </Page>
  );
}

interface SelectionProps {
  readonly label: string;
  readonly all: string;
  readonly value: string;
  readonly names: readonly string[];
  readonly onChange: (name: string) => void;
}

function Selection({ label, all, value, names, onChange }: SelectionProps) {
  return (
    <label>
      {label}{" "}
      <FormSelect aria-label={label} value={value} onChange={(_event, name) => onChange(name)}>
        <FormSelectOption value="" label={all} />
        {names.map((name) => (
          <FormSelectOption key={name} value={name} label={shown(name)} />
        ))}
      </FormSelect>
    </label>
  );
}
