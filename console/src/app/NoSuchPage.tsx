import { EmptyState, EmptyStateBody } from "@patternfly/react-core/dist/esm/components/EmptyState";

/** Says that the URL names no page of the console. */
export function NoSuchPage() {
  return (
    <EmptyState titleText="No such page" headingLevel="h1">
      <EmptyStateBody>The console has no page at this address. Choose one from the navigation.</EmptyStateBody>
    </EmptyState>
  );
}
