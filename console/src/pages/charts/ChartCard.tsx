import { useState } from "react";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Checkbox } from "@patternfly/react-core/dist/esm/components/Checkbox";

import { ALL, DURATIONS, hasRoomForLine, titleOf, WINDOWS, type Chart } from "../../model/charts";
import { smoothed, stacked } from "../../model/series";
import { cut, shown } from "../../model/text";
import { LineChart } from "../../parts";
import { useHistories } from "../../store";
import { ChoiceField, TextField } from "../common/Field";
import { Panel } from "../common/Panel";
import { copyChart, putChart, removeChart } from "./choice";
import { LineForm } from "./LineForm";
import { seriesOf } from "./series";

const HEIGHT = 220;
const LARGE_HEIGHT = 420;

/** Shows one chart with buttons to edit, copy, enlarge and remove it. */
export function ChartCard({ chart, routers }: { chart: Chart; routers: readonly string[] }) {
  const [isEdited, setIsEdited] = useState(false);
  const title = shown(chart.title, 100);
  const button = (label: string, action: () => void) => (
    <Button variant="link" isInline aria-label={`${label}: ${title}`} onClick={action}>
      {label}
    </Button>
  );
  return (
    <div className={chart.isLarge ? "console-large" : undefined}>
      <Panel title={<bdi>{title}</bdi>}>
        <Lines chart={chart} routers={routers} />
        <div className="console-row">
          {button(isEdited ? "Done" : "Edit", () => setIsEdited(!isEdited))}
          {button("Copy", () => copyChart(chart))}
          {button(chart.isLarge ? "Shrink" : "Enlarge", () => putChart({ ...chart, isLarge: !chart.isLarge }))}
          {button("Remove", () => removeChart(chart))}
          <span className="console-subtle">
            {chart.minutes} min{chart.isStacked ? ", stacked" : ""}
          </span>
        </div>
        {isEdited && <Editor chart={chart} />}
      </Panel>
    </div>
  );
}

function Lines({ chart, routers }: { chart: Chart; routers: readonly string[] }) {
  const named = chart.lines.flatMap((line) =>
    seriesOf(line, routers).map(([router, key]) => ({
      key,
      label: shown(chart.lines.length === 1 && line.router === ALL ? router : `${router}: ${titleOf(line)}`, 60),
    })),
  );
  const histories = useHistories(named.map(({ key }) => key)).map((history) => smoothed(history, chart.windowSeconds * 1_000));
  const drawn = chart.isStacked ? stacked(histories) : histories;
  const series = named.map(({ label }, place) => ({ label, times: [], values: [], ...drawn[place] }));
  // The highest series of a stack is drawn first, so that it does not cover the others.
  const ordered = chart.isStacked ? [...series].reverse() : series;
  const isRate = chart.lines.length > 0 && chart.lines.every((line) => line.isRate);
  return (
    <LineChart
      label={chart.title}
      series={ordered}
      unit={isRate ? "/s" : ""}
      height={chart.isLarge ? LARGE_HEIGHT : HEIGHT}
      lastMs={chart.minutes * 60_000}
      isFilled={chart.isStacked}
    />
  );
}

function Editor({ chart }: { chart: Chart }) {
  const [isAdding, setIsAdding] = useState(false);
  return (
    <div className="console-editor">
      <div className="console-form">
        <TextField label="Title" value={chart.title} onChange={(title) => putChart({ ...chart, title: cut(title, 200) })} />
        <ChoiceField
          label="Duration"
          value={String(chart.minutes)}
          onChange={(minutes) => putChart({ ...chart, minutes: Number(minutes) })}
          options={DURATIONS.map((each) => [String(each), `${each} min`])}
        />
        <ChoiceField
          label="Rate over"
          value={String(chart.windowSeconds)}
          onChange={(seconds) => putChart({ ...chart, windowSeconds: Number(seconds) })}
          options={WINDOWS.map((each) => [String(each), `${each} s`])}
        />
        <Checkbox
          id={`${chart.id}-stacked`}
          label="Stacked"
          isChecked={chart.isStacked}
          onChange={(_event, isStacked) => putChart({ ...chart, isStacked })}
        />
      </div>
      <ul className="console-list" aria-label="Lines">
        {chart.lines.map((line, place) => (
          <li key={JSON.stringify(line)} className="console-row">
            <bdi>{shown(`${line.router === ALL ? "every router" : line.router}: ${titleOf(line)}`, 120)}</bdi>
            <Button
              variant="link"
              isInline
              onClick={() => putChart({ ...chart, lines: chart.lines.filter((_line, other) => other !== place) })}
            >
              Remove line
            </Button>
          </li>
        ))}
      </ul>
      {isAdding ? (
        <LineForm
          action="Add line"
          onChoose={(line) => {
            putChart({ ...chart, lines: [...chart.lines, line] });
            setIsAdding(false);
          }}
          onCancel={() => setIsAdding(false)}
        />
      ) : (
        <Button variant="secondary" isDisabled={!hasRoomForLine(chart)} onClick={() => setIsAdding(true)}>
          Add a line
        </Button>
      )}
    </div>
  );
}
