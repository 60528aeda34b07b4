import { EmptyState, EmptyStateBody } from "@patternfly/react-core/dist/esm/components/EmptyState";

/** What an address that names no page shows. */
export function Missing() {
  return (
    <EmptyState titleText="No such page" headingLevel="h1">
      <EmptyStateBody>The console has no page at this address. Choose one from the navigation.</EmptyStateBody>
    </EmptyState>
  );
}
