import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import CompressIcon from "@patternfly/react-icons/dist/esm/icons/compress-arrows-alt-icon";
import ProjectIcon from "@patternfly/react-icons/dist/esm/icons/project-diagram-icon";
import MinusIcon from "@patternfly/react-icons/dist/esm/icons/search-minus-icon";
import PlusIcon from "@patternfly/react-icons/dist/esm/icons/search-plus-icon";
import { useEffect, useState } from "react";

import { arrange } from "./state";
import { ZOOM_STEP, type ZoomControl } from "./useZoom";

/** Shows the buttons over the picture: zoom, show all, and rearrange. */
export function PictureTools({ zoom, onFit }: { zoom: ZoomControl; onFit: () => void }) {
  const [arranged, setArranged] = useState(0);
  // After the nodes have their new places.
  useEffect(() => {
    if (arranged > 0) onFit();
  }, [arranged, onFit]);
  return (
    <div className="topology-tools" role="toolbar" aria-label="Picture">
      <Button variant="secondary" size="sm" aria-label="Zoom in" icon={<PlusIcon />} onClick={() => zoom.zoomBy(ZOOM_STEP)} />
      <Button variant="secondary" size="sm" aria-label="Zoom out" icon={<MinusIcon />} onClick={() => zoom.zoomBy(1 / ZOOM_STEP)} />
      <Button variant="secondary" size="sm" aria-label="Show all" icon={<CompressIcon />} onClick={onFit} />
      <Button
        variant="secondary"
        size="sm"
        aria-label="Rearrange nodes that are not pinned"
        icon={<ProjectIcon />}
        onClick={() => {
          arrange();
          setArranged((count) => count + 1);
        }}
      />
    </div>
  );
}
