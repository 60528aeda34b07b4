import { useEffect, type ReactNode } from "react";
import { PageSection } from "@patternfly/react-core/dist/esm/components/Page";
import { Title } from "@patternfly/react-core/dist/esm/components/Title";

interface Props {
  readonly title: string;
  /** Controls at the right of the title. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** Shows a page of the console: heading, controls and content. The browser's title follows the heading. */
export function Page({ title, actions, children }: Props) {
  useEffect(() => {
    document.title = `${title} - trouter`;
  }, [title]);
  return (
    <>
      <PageSection className="console-heading" padding={{ default: "padding" }}>
        <Title headingLevel="h1" size="2xl">
          {title}
        </Title>
        {actions !== undefined && <div className="console-actions">{actions}</div>}
      </PageSection>
      <PageSection isFilled className="console-content">
        {children}
      </PageSection>
    </>
  );
}
