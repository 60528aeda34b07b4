import { Alert, AlertActionCloseButton, AlertGroup } from "@patternfly/react-core/dist/esm/components/Alert";

import { shown } from "../model/text";
import { closeNotice, useNotices } from "../store";

/** Notices that nothing depends on leave by themselves. */
const TIMEOUT_MS = 8_000;

/** The notices that stand on the page now; a screen reader reads them as they come. */
export function Notices() {
  const notices = useNotices().shown;
  return (
    <AlertGroup isToast isLiveRegion aria-label="Notices">
      {notices.map((notice) => (
        <Alert
          key={notice.id}
          variant={notice.kind}
          title={shown(notice.title, 300)}
          timeout={notice.kind === "danger" ? false : TIMEOUT_MS}
          onTimeout={() => closeNotice(notice.id)}
          actionClose={<AlertActionCloseButton onClose={() => closeNotice(notice.id)} />}
        >
          {notice.text !== undefined && shown(notice.text, 500)}
        </Alert>
      ))}
    </AlertGroup>
  );
}
