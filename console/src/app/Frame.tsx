import type { MouseEvent, ReactNode } from "react";
import {
  Masthead,
  MastheadBrand,
  MastheadContent,
  MastheadLogo,
  MastheadMain,
  MastheadToggle,
} from "@patternfly/react-core/dist/esm/components/Masthead";
import { Page, PageSidebar, PageSidebarBody, PageToggleButton } from "@patternfly/react-core/dist/esm/components/Page";
import { SkipToContent } from "@patternfly/react-core/dist/esm/components/SkipToContent";
import BarsIcon from "@patternfly/react-icons/dist/esm/icons/bars-icon";

import { Account } from "./Account";
import { Navigation } from "./Navigation";
import { Notices } from "./Notices";
import { ThemeSwitch } from "./ThemeSwitch";

const MAIN = "console-main";

const masthead = (
  <Masthead>
    <MastheadMain>
      <MastheadToggle>
        <PageToggleButton variant="plain" aria-label="Navigation">
          <BarsIcon />
        </PageToggleButton>
      </MastheadToggle>
      <MastheadBrand>
        <MastheadLogo component="a" href="#/">
          trouter
        </MastheadLogo>
      </MastheadBrand>
    </MastheadMain>
    <MastheadContent>
      <div className="console-tools">
        <Account />
        <ThemeSwitch />
      </div>
    </MastheadContent>
  </Masthead>
);

const sidebar = (
  <PageSidebar>
    <PageSidebarBody>
      <Navigation />
    </PageSidebarBody>
  </PageSidebar>
);

// A link to #console-main would open another page, because the part behind the hash names the page.
function toContent(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById(MAIN)?.focus();
}

/** Shows the masthead, the navigation, the notices and the current page. */
export function Frame({ children }: { children: ReactNode }) {
  return (
    <Page
      masthead={masthead}
      sidebar={sidebar}
      isManagedSidebar
      isContentFilled
      mainContainerId={MAIN}
      skipToContent={
        <SkipToContent href={`#${MAIN}`} onClick={toContent}>
          Skip to content
        </SkipToContent>
      }
    >
      <Notices />
      {children}
    </Page>
  );
}
