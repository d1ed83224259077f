# Removes from the Secret, the Job or the Deployment of an OSD on a PersistentVolumeClaim what belongs to a database ($db is
# "none") or to encryption that the OSD does not have: the names of containers, volumes, mounts and variables show it. Inserts
# the scripts of init containers.
def is_database: .name | startswith("none") or test("metadata"; "i");
def is_encryption: .name | test("encryption|encrypted-|dev-mapper|DMCRYPT");
def kept: map(select(($db != "none" or (is_database | not)) and ($encrypted == "true" or (is_encryption | not))));
def with_scripts: map({COPY: $copy, OPEN: $open, DISK: $disk}[.] // .);
def of_this_osd: kept | map((.volumeMounts? | arrays) |= kept | (.env? | arrays) |= kept | .command |= with_scripts);
if .kind == "Secret" then select($encrypted == "true") else
  .spec.template.spec |= (
    (.initContainers, .containers) |= of_this_osd
    | .volumes |= kept
    | if $encrypted == "true" then . else del(.hostIPC) end)
end
